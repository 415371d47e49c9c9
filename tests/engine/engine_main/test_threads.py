"""Real engine processes with a number of threads per operation, which a user's model reads while it is built."""

import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine import run
from accel_engine.devices import detect
from accel_engine.devices.host_probe import processors
from accel_engine.engine_main.tensorflow_import import ENVIRONMENT
from accel_engine.events import Event, Outcome, ThreadsChosen
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.process.engine_process import start_engine
from accel_engine.process.warm_engine import WarmEngine
from accel_engine.training.autotuning.run_threads import rates_key, save_rate
from engine.engine_main.record import last, read, status

Engines = list["subprocess.Popen[str]"]

MODEL = """
import os
from pathlib import Path
import keras, tensorflow as tf

def build(input_shape, classes):
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    (Path(__file__).parent / f"threads-{os.getpid()}").write_text(str(threads))
    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes)])
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    return Plan(model=f"{model}:build", epochs=1, validation="off", xla="off")


def train(plan: Plan, engines: Engines) -> tuple[Event, ...]:
    """Train a plan; returns the events of its run."""
    directory = run.create(plan)
    engines.append(start_engine(directory))
    assert engines[-1].wait(600) == 0
    return read(directory)[0]


def chosen(events: tuple[Event, ...]) -> list[tuple[int, str]]:
    return [(event.threads, event.source) for event in events if isinstance(event, ThreadsChosen)]


def seen(tmp_path: Path) -> list[int]:
    """What the model has read in each process that built it; 0 is TensorFlow's own number."""
    return [int(path.read_text()) for path in tmp_path.glob("threads-*")]


@pytest.mark.campaign  # autotuning/test_thread_choice.py asks all that may choose
def test_the_environments_is_preferred_to_that_of_earlier_runs(
    plan: Plan, engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(plan, monkeypatch)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "999")

    events = train(plan, engines)

    assert seen(tmp_path) == [0], "TensorFlow reads the variable itself"
    assert chosen(events) == [(999, "environment")]


def test_a_negative_number_fails_the_run_with_a_reason(
    plan: Plan, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "-1")
    directory = run.create(plan)
    engines.append(start_engine(directory))

    assert engines[0].wait(600) == 1

    assert last(directory).outcome is Outcome.FAILED
    assert "must be at least 1" in last(directory).reason


def remember(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let earlier runs of a plan have been faster with 998 threads than with TensorFlow's own number."""
    for name, value in ENVIRONMENT.items():  # as in the engine, as they are part of what a rate depends on
        monkeypatch.setenv(name, value)
    with closing(run.RunReader(run.create(plan))) as reader:
        written = Plan.from_mapping(reader.info().plan_values)
    key = rates_key(resolve(written), detect())
    save_rate(key, processors(), 99.0)
    save_rate(key, 998, 128.0)


def test_a_run_begins_with_the_number_of_the_fastest_earlier_runs(
    plan: Plan, engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(plan, monkeypatch)

    events = train(plan, engines)

    assert seen(tmp_path) == [998]
    assert chosen(events) == [(998, "earlier runs")]


@pytest.mark.campaign
def test_a_warm_engine_that_has_run_operations_is_replaced_by_one_with_the_plans_number(
    plan: Plan, tmp_path: Path, wait_until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "999")  # the plan's is preferred
    engine = WarmEngine()
    try:
        assert engine.describe(plan).parameters == 650
        directory = run.create(plan.replace(threads=998))
        engine.train(directory)
        wait_until(lambda: status(directory) is run.Status.FINISHED, "the end")
        assert seen(tmp_path) == [998], "the process has the same id before and after"
        assert chosen(read(directory)[0]) == [(998, "plan")]
    finally:
        engine.close()


@pytest.mark.campaign
def test_each_local_worker_has_the_plans_number(plan: Plan, engines: Engines, tmp_path: Path) -> None:
    directory = run.create(plan.replace(strategy="multi-worker", local_workers=2, threads=1))
    engines.append(start_engine(directory))

    assert engines[0].wait(600) == 0

    assert last(directory).outcome is Outcome.FINISHED
    assert seen(tmp_path) == [1, 1]
