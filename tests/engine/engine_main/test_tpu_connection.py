"""Engine processes that try to connect to a missing TPU."""

import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from accel_engine import run
from accel_engine.events import Outcome, Phase, PhaseChanged, RunEnded
from accel_engine.plan import Plan
from accel_engine.run.runs.creation import assign_process

ENGINE = """
import sys
from accel_engine.engine_main import tensorflow_import
tensorflow_import.prepare()
from accel_engine.engine_main.main import main
from accel_engine.training.distributed import strategy_builders
strategy_builders.TPU_CONNECT_TIMEOUT_SECONDS = float(sys.argv.pop(1))
sys.exit(main())
"""
"""An engine with a shorter time limit."""


def train(plan: Plan, patience: float) -> tuple[int, RunEnded, list[str]]:
    """Train a plan; returns the exit status, the event that ended the run, and the details of its building phase."""
    directory: Path = run.create(plan)
    engine = subprocess.Popen([sys.executable, "-c", ENGINE, str(patience), "--run", str(directory)])
    assign_process(directory, engine.pid)
    status = engine.wait(300)
    with closing(run.RunReader(directory)) as reader:
        events = reader.poll().events
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    return (
        status,
        ended,
        [event.detail for event in events if isinstance(event, PhaseChanged) and event.phase is Phase.BUILDING],
    )


def test_a_tpu_address_that_never_answers_times_out() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"grpc://127.0.0.1:{server.getsockname()[1]}"
        status, ended, building = train(Plan(strategy="tpu", tpu=address), 2.0)
    assert status == 1
    assert ended.outcome is Outcome.FAILED
    assert ended.reason == f"cannot connect to the TPU (at {address}, from --tpu): no answer within 2 s"
    assert building == [f"connecting to the TPU: {address}"]


def test_a_tensorflow_without_tpu_support_is_explained() -> None:
    status, ended, _ = train(Plan(strategy="tpu", tpu="local"), 120.0)
    assert status == 1
    assert ended.outcome is Outcome.FAILED
    assert "this TensorFlow has no TPU support" in ended.reason
