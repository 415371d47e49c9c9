"""The engine process: ``python -m accel_engine.process [--describe-data | --run DIRECTORY | ...]``.

With ``--predict``, ``--revalidate`` and ``--describe-data`` it answers one
:class:`accel_engine.launch.engine_query.EngineQuery`. Without options it is a warm engine: it imports TensorFlow,
answers the requests of :class:`accel_engine.launch.warm_engine.WarmEngine`, one JSON object per line, and waits for a
run to train.
"""

import argparse
import os
import sys
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import cast

from accel_engine.errors import AccelError
from accel_engine.events import Outcome
from accel_engine.process import environment, query_server
from accel_engine.process.pipes import claim_pipes, redirect
from accel_engine.process.supervisor import EngineSupervisor
from accel_engine.process.tensorflow_import import TensorFlowImport
from accel_engine.process.warm_server import WarmServer
from accel_engine.run.run_paths import LOG


def main() -> int:
    """Run the engine; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m accel_engine.process", description=__doc__)
    parser.add_argument("--run", type=Path, help="train the run in this directory")
    parser.add_argument("--predict", type=Path, help="predict images with the model of the run in this directory")
    parser.add_argument("--revalidate", type=Path, help="validate the last checkpoint of the run in this directory")
    parser.add_argument("--describe-data", action="store_true", help="load the data of a plan and describe it")
    arguments = parser.parse_args()
    directory = arguments.run
    environment.prepare()
    environment.set_batch_scheduling()  # before threads start, which inherit it
    # Write the output of the user's model to the log at once, in case the process is killed.
    cast(TextIOWrapper, sys.stdout).reconfigure(line_buffering=True)
    tensorflow = TensorFlowImport()
    if arguments.predict:
        return query_server.serve_query(partial(query_server.serve_prediction, arguments.predict), tensorflow)
    if arguments.revalidate:
        return query_server.serve_query(partial(query_server.revalidate, arguments.revalidate), tensorflow)
    if arguments.describe_data:
        return query_server.serve_query(query_server.describe_data, tensorflow)
    if directory is None:
        directory = _wait_for_run(tensorflow)
        if directory is None:
            return 0
    try:
        outcome = EngineSupervisor(directory, tensorflow).run()
    except AccelError as error:
        print(error, file=sys.stderr)  # noqa: T201 (this is the run's log)
        return 1
    return 1 if outcome is Outcome.FAILED else 0


def _wait_for_run(tensorflow: TensorFlowImport) -> Path | None:
    """Serve the dashboard until it hands over a run, then redirect the output to the run's log."""
    requests, replies = claim_pipes()
    server = WarmServer(tensorflow, replies)
    directory = server.serve(requests)
    if directory is None:
        return None
    log = os.open(directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    redirect(2, log)
    requests.close()
    replies.close()
    if server.needs_restart:
        os.execv(sys.executable, [sys.executable, "-m", "accel_engine.process", "--run", str(directory)])  # noqa: S606
    return directory


if __name__ == "__main__":
    sys.exit(main())
