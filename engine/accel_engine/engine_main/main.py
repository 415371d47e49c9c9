"""The engine process: ``python -m accel_engine.process [--describe-data | --describe-model | --run DIRECTORY | ...]``.

With ``--predict``, ``--evaluate``, ``--diagnose``, ``--export``, ``--bench``, ``--held-out-metrics``, ``--revalidate``,
``--describe-data`` and ``--describe-model`` it answers one
:class:`accel_engine.process.engine_query.EngineQuery`; with ``--try-plan`` it converses with
:class:`accel_engine.measure.trial_process.TrialProcess`. Without options it is a warm
engine: it imports TensorFlow, answers the requests of :class:`accel_engine.process.warm_engine.WarmEngine`, one JSON
object per line, and waits for a run to train.
"""

import argparse
import os
import sys
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from accel_engine import hangup, network_namespace
from accel_engine.engine_main import environment, query_server, trial_server
from accel_engine.engine_main.pipes import claim_pipes, redirect
from accel_engine.engine_main.supervisor import EngineSupervisor, train_command, wake_queue
from accel_engine.engine_main.tensorflow_import import TensorFlowImport
from accel_engine.engine_main.warm_server import WarmServer
from accel_engine.errors import AccelError
from accel_engine.events import Outcome
from accel_engine.files import open_log
from accel_engine.keep_alive.launch import ensure_watched
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import RunReader
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
    parser.add_argument(
        "--predict", type=Path, help="predict with the model of the run in this directory, or of this file"
    )
    parser.add_argument("--evaluate", action="store_true", help="evaluate models on the same examples")
    parser.add_argument("--diagnose", action="store_true", help="report on the examples that a run is evaluated on")
    parser.add_argument("--export", action="store_true", help="export the trained model of a run")
    parser.add_argument("--revalidate", type=Path, help="validate the last checkpoint of the run in this directory")
    parser.add_argument("--describe-data", action="store_true", help="load the data of a plan and describe it")
    parser.add_argument("--describe-model", action="store_true", help="build the model of a plan and describe it")
    parser.add_argument("--bench", action="store_true", help="measure the inference of models, as a query")
    parser.add_argument("--held-out-metrics", action="store_true", help="compute the metrics of models to be measured")
    parser.add_argument("--try-plan", action="store_true", help="take steps of a plan when asked to, in a conversation")
    parser.add_argument("--isolated", action="store_true", help="the process is in a network namespace of the run")
    arguments = parser.parse_args()
    directory = arguments.run
    environment.prepare()
    if not (arguments.bench or arguments.export):  # which measure what a server would reach
        environment.set_batch_scheduling()  # before threads start, which inherit it
    never_fail_to_print()
    tensorflow = TensorFlowImport()
    if arguments.predict:
        return query_server.serve_query(partial(query_server.serve_prediction, arguments.predict), tensorflow)
    if arguments.evaluate:
        return query_server.serve_query(query_server.serve_evaluation, tensorflow)
    if arguments.diagnose:
        return query_server.serve_query(query_server.serve_diagnosis, tensorflow)
    if arguments.export:
        return query_server.serve_query(query_server.serve_export, tensorflow)
    if arguments.revalidate:
        return query_server.serve_query(partial(query_server.revalidate, arguments.revalidate), tensorflow)
    if arguments.describe_data:
        return query_server.serve_query(query_server.describe_data, tensorflow)
    if arguments.describe_model:
        return query_server.serve_query(query_server.describe_model, tensorflow)
    if arguments.bench:
        return query_server.serve_query(query_server.serve_bench, tensorflow)
    if arguments.held_out_metrics:
        return query_server.serve_query(query_server.serve_held_out_metrics, tensorflow)
    if arguments.try_plan:
        return trial_server.serve_trial(tensorflow)
    if directory is None:
        directory = _wait_for_run(tensorflow)
        if directory is None:
            return 0
    if not arguments.isolated:
        ensure_watched(directory)
    if not arguments.isolated and _is_isolated(directory):
        command = network_namespace.command(*train_command(directory), "--isolated")
        os.execv(command[0], command)  # noqa: S606
    try:
        outcome = EngineSupervisor(directory, tensorflow, isolated=arguments.isolated).run()
    except AccelError as error:
        print(error, file=sys.stderr)  # noqa: T201 (this is the run's log)
        return 1
    finally:
        wake_queue(directory, isolated=arguments.isolated)
    return 1 if outcome is Outcome.FAILED else 0


def _wait_for_run(tensorflow: TensorFlowImport) -> Path | None:
    """Serve the dashboard until it hands over a run, then redirect the output to the run's log."""
    requests, replies = claim_pipes()
    server = WarmServer(tensorflow, replies)
    directory = server.serve(requests)
    if directory is None:
        return None
    log = open_log(directory / LOG)
    with suppress(OSError):  # what TensorFlow has printed, if that is in a file
        os.write(log, os.pread(2, MAX_OUTPUT, 0))
    os.dup2(log, 1)
    redirect(2, log)
    requests.close()
    replies.close()
    if server.needs_restart:
        os.execv(sys.executable, train_command(directory))  # noqa: S606
    return directory


def _is_isolated(directory: Path) -> bool:
    """Whether a run's process belongs in a network namespace; the supervisor reports all errors."""
    with suppress(AccelError), closing(RunReader(directory)) as reader:
        return isolation.is_isolated(resolve(Plan.from_mapping(reader.info().plan_values), chosen=()))
    return False
