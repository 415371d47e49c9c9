"""The engine process: ``python -m accel_engine.process [--run DIRECTORY | --request NAME | --requests]``.

With ``--request`` it answers one request of :mod:`accel_engine.requests` to
:class:`accel_engine.process.engine_call.EngineCall`, with ``--requests`` one after another.
Without options it is a warm engine: it imports TensorFlow, describes models for
:class:`accel_engine.process.warm_engine.WarmEngine`, and waits for a run to train.
"""

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path

from accel_engine import hangup, network_namespace
from accel_engine.engine_main import tensorflow_import
from accel_engine.engine_main.main_thread import EngineMainThread, train_command, wake_queue
from accel_engine.engine_main.request_server import claim_pipes, redirect, serve_request, serve_requests
from accel_engine.engine_main.tensorflow_import import TensorFlowImport
from accel_engine.engine_main.warm_server import WarmServer
from accel_engine.errors import AccelError
from accel_engine.events import Outcome
from accel_engine.files import open_log
from accel_engine.keep_alive.restart import ensure_watched
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import resolve
from accel_engine.requests.protocol.request import find_request, request_names
from accel_engine.run import read_run
from accel_engine.run.directory.log_file import never_fail_to_print
from accel_engine.run.directory.run_paths import LOG

MAX_OUTPUT = 1 << 16
"""Bytes of output before the run that are copied to its log."""


def main() -> int:
    """Run the engine; returns the exit status."""
    hangup.ignore()
    os.umask(0o077)  # what a run writes is its owner's, whatever TensorFlow or Keras writes it with
    parser = argparse.ArgumentParser(prog="python -m accel_engine.process", description=__doc__)
    parser.add_argument("--run", type=Path, help="train the run in this directory")
    parser.add_argument("--request", choices=request_names(), help="answer one request")
    parser.add_argument("--requests", action="store_true", help="answer requests of any type, one after another")
    parser.add_argument("--isolated", action="store_true", help="the process is in a network namespace of the run")
    arguments = parser.parse_args()
    directory = arguments.run
    tensorflow_import.prepare()
    request = find_request(arguments.request) if arguments.request else None
    if request is None or request.is_batch:
        tensorflow_import.set_batch_scheduling()  # before threads start, which inherit it
    never_fail_to_print()
    tensorflow = TensorFlowImport()
    if request is not None:
        return serve_request(request, tensorflow)
    if arguments.requests:
        return serve_requests(tensorflow)
    if directory is None:
        directory = _wait_for_run(tensorflow)
        if directory is None:
            return 0
    if not arguments.isolated:
        ensure_watched(directory)
    if not arguments.isolated and _is_isolated(directory):
        command = network_namespace.isolated_command(*train_command(directory), "--isolated")
        os.execv(command[0], command)  # noqa: S606
    try:
        outcome = EngineMainThread(directory, tensorflow, isolated=arguments.isolated).run()
    except AccelError as error:
        print(error, file=sys.stderr)  # noqa: T201 (this is the run's log)
        return 1
    finally:
        wake_queue(directory, isolated=arguments.isolated)
    return 1 if outcome is Outcome.FAILED else 0


def _wait_for_run(tensorflow: TensorFlowImport) -> Path | None:
    """Serve the dashboard until it hands over a run, then redirect the output to the run's log."""
    channel = claim_pipes()
    server = WarmServer(tensorflow, channel)
    directory = server.serve()
    if directory is None:
        return None
    log = open_log(directory / LOG)
    with suppress(OSError):  # what TensorFlow has printed, if that is in a file
        os.write(log, os.pread(2, MAX_OUTPUT, 0))
    os.dup2(log, 1)
    redirect(2, log)
    channel.close()
    if server.needs_restart:
        os.execv(sys.executable, train_command(directory))  # noqa: S606
    return directory


def _is_isolated(directory: Path) -> bool:
    """Whether a run's process belongs in a network namespace; the supervisor reports all errors."""
    with suppress(AccelError):
        return isolation.is_isolated(resolve(Plan.from_mapping(read_run(directory).plan_values), chosen=()))
    return False
