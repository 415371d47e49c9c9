"""How a run ends that would continue in another process, and which stops a watched run is started again after."""

import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine import run
from accel_engine.devices import Inventory, Reading, Sample, Sampler
from accel_engine.devices.device_types import CountedItem, Device
from accel_engine.devices.xid import error_text
from accel_engine.engine_main import main_thread as supervisor_module
from accel_engine.engine_main.main_thread import EngineMainThread
from accel_engine.engine_main.tensorflow_import import TensorFlowImport
from accel_engine.errors import RunError
from accel_engine.events import EpochEnded, Outcome, RunEnded, RunStarted, Warned
from accel_engine.plan import Plan
from accel_engine.training.recovery.recovery_action import NewProcess, RecoveryAction
from waiting import wait_until

from .record import events, last

NEXT = NewProcess(
    Plan(micro_batches=2), RecoveryAction("out of memory", "out of memory after step 7", "smaller steps", 0), 7
)


@pytest.fixture
def supervisor(home: Path) -> EngineMainThread:
    """The supervisor of a new run, which takes signals."""
    return EngineMainThread(run.create(Plan()), TensorFlowImport())


def trains(supervisor: EngineMainThread, monkeypatch: pytest.MonkeyPatch, training: Callable[[], None]) -> RunEnded:
    """Run a supervisor with some function in place of the training; returns the end of the run."""
    monkeypatch.setattr(supervisor, "_train", training)
    supervisor.run()
    return last(supervisor._directory)


def test_a_stop_as_memory_runs_out_stops_the_run(supervisor: EngineMainThread, monkeypatch: pytest.MonkeyPatch) -> None:
    def training() -> None:
        run.send_command(supervisor._directory, "stop")
        wait_until(lambda: supervisor._commands.stop)
        supervisor._next = NEXT

    ended = trains(supervisor, monkeypatch, training)
    assert ended.outcome is Outcome.STOPPED
    assert ended.reason.startswith("stop requested by")


def test_a_run_without_memory_for_another_process_has_failed(
    supervisor: EngineMainThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    def leave(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(os, "execve", fail)
    monkeypatch.setattr(supervisor, "_exit", leave)
    with pytest.raises(SystemExit):
        trains(supervisor, monkeypatch, lambda: setattr(supervisor, "_next", NEXT))
    ended = last(supervisor._directory)
    assert ended.outcome is Outcome.FAILED
    assert ended.reason.endswith("the engine cannot be started again: Cannot allocate memory")


def test_an_engine_that_was_started_twice_does_not_train_an_ended_run_again(
    supervisor: EngineMainThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the process that starts runs is killed between starting an engine and noting it."""
    directory = supervisor._directory
    trains(supervisor, monkeypatch, lambda: setattr(supervisor, "_ended", supervisor._make_end(Outcome.FINISHED, "")))
    second = EngineMainThread(directory, TensorFlowImport())
    with pytest.raises(RunError, match=f"run {directory.name} has already ended, and was not reopened"):
        second.run()
    assert sum(isinstance(event, RunStarted) for event in events(directory)) == 1
    assert run.read_run(directory).status is run.Status.FINISHED


def test_the_shutdown_after_a_notice_does_not_hurry_the_stop(
    supervisor: EngineMainThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = supervisor._commands

    def training() -> None:
        for _ in range(2):  # several clouds cannot be, but the second is no second Ctrl-C
            commands.stop_before_end("AWS", "it plans to terminate this machine at 12:00")
        wait_until(lambda: commands.stop)
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: not commands._signals)
        assert not commands.is_stop_overdue
        supervisor._ended = supervisor._make_end(Outcome.STOPPED, commands.stop.origin)

    ended = trains(supervisor, monkeypatch, training)
    assert ended.reason == "stop requested by AWS (it plans to terminate this machine at 12:00)"
    assert not ended.temporary
    assert [commands.mailbox.take().name, commands.mailbox.take()] == ["stop", None]


@pytest.mark.parametrize("by_user", [False, True])
def test_the_stop_of_a_user_after_sigterm_is_for_good(
    supervisor: EngineMainThread, monkeypatch: pytest.MonkeyPatch, by_user: bool
) -> None:
    def training() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: supervisor._commands.is_preempted)
        if by_user:
            run.send_command(supervisor._directory, "stop")
            wait_until(lambda: not supervisor._commands.is_preempted)
        supervisor._ended = supervisor._make_end(Outcome.STOPPED, "stopped")

    assert trains(supervisor, monkeypatch, training).temporary is not by_user


def test_a_continued_run_that_ends_before_it_trains_has_its_epochs(
    supervisor: EngineMainThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(run.RunWriter(supervisor._directory)) as writer:
        writer.write_event(EpochEnded(time=1.0, epoch=3, step=30, metrics={}, seconds=1.0))
    supervisor._first_step = 30

    def training() -> None:
        supervisor._ended = supervisor._make_end(Outcome.STOPPED, "stopped")

    ended = trains(supervisor, monkeypatch, training)
    assert (ended.steps, ended.epochs) == (30, 3)


@pytest.mark.parametrize("is_reported", [True, False], ids=["by the driver", "in the kernel's log"])
def test_an_error_of_a_gpu_is_told_and_named_where_the_run_fails(
    supervisor: EngineMainThread, monkeypatch: pytest.MonkeyPatch, is_reported: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    logged = [] if is_reported else [("0000:01:00.0", 79)]
    gpu = Device("gpu:1", "gpu", "A100", address="0000:01:00.0")
    monkeypatch.setattr(supervisor_module, "kernel_errors", lambda since: logged)
    monkeypatch.setattr(Sampler, "inventory", Inventory((gpu,)))
    text = "gpu:1 had error 79 (Xid): it fell off the PCI bus"

    def training() -> None:
        if is_reported:
            sample = Sample(0.0, "gpu:1", {"errors": Reading.counted((CountedItem(error_text(79), "79"),))})
            for _ in range(2):
                supervisor._write_samples((sample,))
        supervisor._ended = supervisor._make_end(Outcome.FAILED, "CUDA_ERROR_UNKNOWN")

    assert trains(supervisor, monkeypatch, training).reason == f"CUDA_ERROR_UNKNOWN; meanwhile {text}"
    told = [event.message for event in events(supervisor._directory) if isinstance(event, Warned)]
    assert told == [text] * is_reported
    assert capfd.readouterr().err.count(f"accel-tui: {text}\n") == is_reported


@pytest.mark.parametrize("is_reported", [True, False], ids=["by the driver", "in the kernel's log"])
@pytest.mark.parametrize("devices", [("gpu:0",), ("cpu:0",)])
def test_an_error_of_a_gpu_that_others_use_is_not_the_run_s(
    home: Path, monkeypatch: pytest.MonkeyPatch, is_reported: bool, devices: tuple[str, ...]
) -> None:
    supervisor = EngineMainThread(run.create(Plan(devices=devices)), TensorFlowImport())
    logged = [] if is_reported else [("0000:02:00.0", 31), ("0000:03:00.0", 31)]  # the second is hidden from the run
    gpus = (
        Device("gpu:0", "gpu", "A100", address="0000:01:00.0"),
        Device("gpu:3", "gpu", "A100", address="0000:02:00.0"),
    )
    monkeypatch.setattr(supervisor_module, "kernel_errors", lambda since: logged)
    monkeypatch.setattr(Sampler, "inventory", Inventory(gpus))

    def training() -> None:
        if is_reported:
            sample = Sample(0.0, "gpu:3", {"errors": Reading.counted((CountedItem(error_text(31), "31"),))})
            supervisor._write_samples((sample,))
        supervisor._ended = supervisor._make_end(Outcome.FAILED, "the data is gone")

    assert trains(supervisor, monkeypatch, training).reason == "the data is gone"
    assert not [event for event in events(supervisor._directory) if isinstance(event, Warned)]
