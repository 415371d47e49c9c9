"""Real engine processes, as a dashboard or a command sees them."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

from accel_engine import run
from accel_engine.events import CommandAnswered, Event, Outcome, Phase, PhaseChanged, RunEnded, RunStarted
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.process.warm_engine import EngineState, WarmEngine
from accel_engine.run import Status
from accel_engine.run.engine.commands import read_answer

from .record import read

LONG = Plan(model="mlp", epochs=100_000, last_batch="drop", validation="off", xla="off")
"""A plan that trains until it is stopped."""

Wait = Callable[..., None]


def events(directory: Path) -> tuple[Event, ...]:
    reader = run.RunReader(directory)
    try:
        return reader.poll().events
    finally:
        reader.close()


def status(directory: Path) -> Status | None:
    return run.list_runs()[0].status


def training(directory: Path) -> bool:
    return run.list_runs()[0].steps > 50


def last(directory: Path) -> RunEnded:
    event = events(directory)[-1]
    assert isinstance(event, RunEnded)
    return event


def test_an_engine_trains_handles_commands_and_continues_after_a_crash(
    engines: list[subprocess.Popen[str]], wait_until: Wait
) -> None:
    directory = run.create(LONG)
    assert status(directory) is Status.STARTING
    engines.append(start_engine(directory))
    for number in (signal.SIGHUP, signal.SIGUSR1):  # they end no engine, not even while it starts
        engines[0].send_signal(number)
    wait_until(lambda: training(directory), "training")
    engines[0].send_signal(signal.SIGHUP)
    reached = run.list_runs()[0].steps
    wait_until(lambda: run.list_runs()[0].steps > reached, "going on after the hangup")
    assert status(directory) is Status.RUNNING

    second = subprocess.run(
        [sys.executable, "-m", "accel_engine.process", "--run", directory], capture_output=True, text=True, check=False
    )
    assert second.returncode == 1
    assert second.stderr.strip() == f"run {directory.name} is already being trained by process {engines[0].pid}"

    number = run.send_command(directory, "checkpoint")
    wait_until(lambda: read_answer(directory, number), "an answer")
    assert read_answer(directory, number)[0]
    said = events(directory)
    assert isinstance(said[0], RunStarted)
    assert {"tensorflow", "keras", "python"} <= said[0].versions.keys()
    phases = [event.phase for event in said if isinstance(event, PhaseChanged)]
    assert phases[:4] == [Phase.IMPORTING, Phase.BUILDING, Phase.TRACING, Phase.TRAINING]

    engines[0].kill()
    wait_until(lambda: status(directory) is Status.LOST, "the loss to be seen")
    _, before = read(directory)
    reached = len(before)

    run.reopen(directory, LONG)
    engines.append(start_engine(directory))
    wait_until(lambda: status(directory) is Status.RUNNING and run.list_runs()[0].steps > reached, "going on")
    again = [event for event in events(directory) if isinstance(event, RunStarted)][-1]
    assert 0 < again.first_step <= reached
    np.testing.assert_array_equal(read(directory)[1][:reached], before)  # those it has taken again, too

    os.kill(engines[1].pid, signal.SIGTERM)
    assert engines[1].wait(600) == 0
    assert last(directory).outcome is Outcome.STOPPED
    assert "SIGTERM" in last(directory).reason
    assert status(directory) is Status.STOPPED


def test_stop_now_does_not_wait_for_tensorflow(engines: list[subprocess.Popen[str]], wait_until: Wait) -> None:
    directory = run.create(LONG)
    engines.append(start_engine(directory))
    wait_until(lambda: status(directory) is Status.RUNNING, "the engine")

    number = run.send_command(directory, "stop_now")  # while TensorFlow is being imported

    engines[0].wait(600)
    assert last(directory).outcome is Outcome.STOPPED
    assert read_answer(directory, number)[0]
    assert [event.obeyed for event in events(directory) if isinstance(event, CommandAnswered)] == [True]


def test_a_failed_run_exits_with_1_and_the_reason(engines: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    model = tmp_path / "gone.py"
    model.write_text("")
    directory = run.create(Plan(model=f"{model}:build"))
    model.unlink()

    engines.append(start_engine(directory))

    assert engines[0].wait(600) == 1
    assert last(directory).outcome is Outcome.FAILED
    assert "no such file" in last(directory).reason


def test_a_warm_engine_describes_and_then_trains(wait_until: Wait) -> None:
    engine = WarmEngine()
    try:
        assert engine.wait_ready(120), engine.problem
        description = engine.describe(Plan(model="mlp"))
        assert (description.parameters, description.input_shape) == (64 * 128 + 128 + 128 * 10 + 10, (8, 8, 1))
        assert "at least 32x32" in engine.describe(Plan(model="MobileNetV2")).problem
        assert not psutil.Process(engine.pid).children()

        # Virtual CPUs can only be laid out in a process whose devices were not touched.
        directory = run.create(Plan(model="mlp", epochs=1, strategy="mirrored", virtual_cpus=2))
        engine.train(directory)

        assert engine.state is EngineState.HANDED_OVER
        wait_until(lambda: status(directory) is Status.FINISHED, "the end")
        assert not any(
            isinstance(event, PhaseChanged) and event.phase is Phase.IMPORTING for event in events(directory)
        )
    finally:
        engine.close()


def test_a_warm_engine_that_ran_user_code_is_replaced(tmp_path: Path, wait_until: Wait) -> None:
    """The files of its run are private under any umask, and a hangup does not end it."""
    model = tmp_path / "own.py"
    model.write_text(
        "import keras\n"
        "def build(input_shape, classes):\n"
        "    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes)])\n"
    )
    plan = Plan(model=f"{model}:build", epochs=1, tensorboard="on")
    umask = os.umask(0)
    engine = WarmEngine()
    try:
        assert engine.describe(plan).parameters == 650
        directory = run.create(plan)
        engine.train(directory)
        os.kill(engine.pid, signal.SIGHUP)  # before, while or after it is replaced
        wait_until(lambda: status(directory) is Status.FINISHED, "the end")
        assert events(directory)[0].pid == engine.pid
        written = [directory, *directory.rglob("*")]
        assert {"model.keras", "run.db", "log.txt", "checkpoints", "tensorboard"} <= {path.name for path in written}
        assert [path for path in written if path.stat().st_mode & 0o077] == []
    finally:
        os.umask(umask)
        engine.close()


def test_a_hanging_description_does_not_delay_a_run(tmp_path: Path, wait_until: Wait) -> None:
    model = tmp_path / "slow.py"
    model.write_text(
        "import sys, threading\n"
        "from pathlib import Path\n"
        "def build():\n"
        "    assert sys.stdin.read() == ''\n"
        f"    Path({str(tmp_path / 'called')!r}).touch()\n"
        "    threading.Event().wait()\n"
    )
    engine = WarmEngine()
    try:
        threading.Thread(target=engine.describe, args=(Plan(model=f"{model}:build"),), daemon=True).start()
        wait_until((tmp_path / "called").exists, "the call")

        directory = run.create(Plan(model="mlp", epochs=1))
        engine.train(directory)

        wait_until(lambda: status(directory) is Status.FINISHED, "the end")
        assert events(directory)[0].pid == engine.pid
    finally:
        engine.close()


def test_output_of_a_model_is_logged_at_once(
    engines: list[subprocess.Popen[str]], tmp_path: Path, wait_until: Wait
) -> None:
    model = tmp_path / "chatty.py"
    model.write_text("import threading\ndef build():\n    print('good morning')\n    threading.Event().wait()\n")
    directory = run.create(Plan(model=f"{model}:build"))

    engines.append(start_engine(directory))

    wait_until(lambda: "good morning" in (directory / "log.txt").read_text(), "the greeting")


def test_a_warm_engine_exits_with_its_dashboard(wait_until: Wait) -> None:
    program = "from accel_engine.process.warm_engine import WarmEngine; print(WarmEngine().pid, flush=True); input()"
    dashboard = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with dashboard:
        assert dashboard.stdout is not None
        process = psutil.Process(int(dashboard.stdout.readline()))
        dashboard.kill()

    wait_until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, "its end")
