"""Engines that are lost, and started again by the process that watches their runs."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from accel_engine import run
from accel_engine.devices.preemption import HOST_VARIABLE
from accel_engine.events import Outcome, Recovered, RunEnded, RunStarted
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run import RunReader
from accel_engine.run.directory import lock
from accel_engine.run.directory.run_paths import WATCHER_LOCK, latest_checkpoint
from accel_engine.run.engine.commands import read_answer
from metadata_server import GOOGLE, MetadataServer

from .record import events, last, status, steps

PLAN = Plan(
    model="mlp",
    batch_size=64,
    steps_per_epoch=3000,
    epochs=1,
    validation="off",
    checkpoint_every="100 steps",
    xla="off",
    keep_alive="on",
)

Wait = Callable[..., None]


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TUI_RESTART_SECONDS", "0.1")


@pytest.fixture
def watched() -> Iterator[Callable[[Path], list[psutil.Process]]]:
    """Finds the processes that watch a run; they end at the end of the test, with their engines."""
    known: list[Path] = []  # find adds to it

    def find(directory: Path) -> list[psutil.Process]:
        known.append(directory)
        words = ["accel_engine.keep_alive", str(directory)]
        return [each for each in psutil.process_iter(["cmdline"]) if (each.info["cmdline"] or [])[-2:] == words]

    yield find
    for directory in set(known):
        for process in find(directory):
            for each in (process, *process.children(recursive=True)):
                each.kill()


def pid(directory: Path) -> int | None:
    with closing(RunReader(directory)) as reader:
        return reader.info().pid


def all_of(directory: Path, kind: type) -> list:
    return [event for event in events(directory) if isinstance(event, kind)]


def is_over(directory: Path) -> bool:
    return not status(directory).live and not lock.is_locked(directory, WATCHER_LOCK)


def test_a_killed_engine_is_started_again(
    engines: list["subprocess.Popen[str]"], wait_until: Wait, watched: Callable[[Path], list[psutil.Process]]
) -> None:
    directory = run.create(PLAN.replace(steps_per_epoch=200_000))
    engines.append(start_engine(directory))
    wait_until(lambda: latest_checkpoint(directory) >= 100, "a checkpoint")
    assert len(watched(directory)) == 1
    first = engines[0].pid
    engines[0].kill()
    engines[0].wait()
    assert status(directory).live  # it is not lost: it will be started again
    wait_until(lambda: len(all_of(directory, RunStarted)) == 2 and pid(directory) != first, "the second engine")
    wait_until(lambda: latest_checkpoint(directory) > all_of(directory, RunStarted)[1].first_step, "progress")
    assert len(watched(directory)) == 1
    second = pid(directory)
    assert second
    os.kill(second, signal.SIGKILL)
    wait_until(lambda: len(all_of(directory, Recovered)) == 2, "the third engine")

    one, two = all_of(directory, Recovered)
    assert (one.trouble, one.reason) == ("engine lost", "the engine exited unexpectedly")
    assert two.reason == "the engine exited unexpectedly (SIGKILL)"
    assert 0 < one.step <= one.failed_step
    assert one.step == all_of(directory, RunStarted)[1].first_step
    assert "1 of 5" in one.action
    number = run.send_command(directory, "stop")
    wait_until(lambda: read_answer(directory, number), "the stop")
    wait_until(lambda: is_over(directory), "the end")
    assert last(directory).outcome is Outcome.STOPPED
    wait_until(lambda: not watched(directory), "the end of the process that watches")


def test_a_preempted_engine_saves_and_is_started_again(
    engines: list["subprocess.Popen[str]"], wait_until: Wait, watched: Callable[[Path], list[psutil.Process]]
) -> None:
    directory = run.create(PLAN.replace(checkpoint_every="auto", steps_per_epoch=100_000))
    engines.append(start_engine(directory))
    wait_until(lambda: steps(directory) > 20, "training")
    watched(directory)
    engines[0].send_signal(signal.SIGUSR1)
    wait_until(lambda: latest_checkpoint(directory), "a checkpoint before the preemption")
    saved = latest_checkpoint(directory)
    wait_until(lambda: steps(directory) > saved, "training to go on")
    engines[0].send_signal(signal.SIGTERM)
    assert engines[0].wait(600) == 0
    wait_until(lambda: all_of(directory, Recovered), "the second engine")

    (ended,) = all_of(directory, RunEnded)
    assert (ended.outcome, ended.temporary) == (Outcome.STOPPED, True)
    assert "SIGTERM" in ended.reason
    (recovered,) = all_of(directory, Recovered)
    assert recovered.step == recovered.failed_step == ended.steps > saved
    run.send_command(directory, "stop")
    wait_until(lambda: is_over(directory), "the end")
    assert not last(directory).temporary


def test_a_machine_that_a_cloud_takes_away_is_left_with_a_checkpoint(
    engines: list["subprocess.Popen[str]"],
    wait_until: Wait,
    watched: Callable[[Path], list[psutil.Process]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with MetadataServer() as server:
        monkeypatch.setenv(HOST_VARIABLE, server.address)
        server.answer("GET", GOOGLE, "FALSE")
        directory = run.create(PLAN.replace(steps_per_epoch=100_000, preemption_notice="gce"))
        engines.append(start_engine(directory))
        wait_until(lambda: steps(directory) > 20, "training")
        watched(directory)
        server.answer("GET", GOOGLE, "TRUE")
        assert engines[0].wait(600) == 0

    ended = last(directory)
    assert (ended.outcome, ended.temporary) == (Outcome.STOPPED, False)
    assert ended.reason == "stop requested by Google Cloud (it preempts this machine)"
    assert latest_checkpoint(directory) == ended.steps > 20
    wait_until(lambda: is_over(directory), "the end")
    wait_until(lambda: not watched(directory), "the end of the process that watches")
    assert not all_of(directory, Recovered)


def test_a_run_that_fails_for_good_ends(
    engines: list["subprocess.Popen[str]"], wait_until: Wait, watched: Callable[[Path], list[psutil.Process]]
) -> None:
    directory = run.create(PLAN.replace(optimizer="sgd", learning_rate=1e20, on_nan="stop"))
    engines.append(start_engine(directory))
    assert engines[0].wait(600) == 1
    wait_until(lambda: is_over(directory), "the end")

    assert not all_of(directory, Recovered)
    assert not last(directory).temporary
    wait_until(lambda: not watched(directory), "the end of the process that watches")


TOGETHER = PLAN.replace(last_batch="drop", strategy="multi-worker", local_workers=2, steps_per_epoch=50_000)


@pytest.mark.campaign
def test_all_workers_are_started_again_when_one_is_killed(
    engines: list["subprocess.Popen[str]"], wait_until: Wait, watched: Callable[[Path], list[psutil.Process]]
) -> None:
    directory = run.create(TOGETHER)
    engines.append(start_engine(directory))
    worker = directory / "workers" / "1"
    wait_until(lambda: latest_checkpoint(directory) and latest_checkpoint(worker), "checkpoints")
    (watcher,) = watched(directory)
    assert not watched(worker)
    lost = pid(worker)
    assert lost
    os.kill(lost, signal.SIGKILL)
    wait_until(lambda: all_of(directory, Recovered), "the second engine")
    (recovered,) = all_of(directory, Recovered)
    assert "worker 1" in recovered.reason
    wait_until(lambda: latest_checkpoint(directory) > recovered.step, "progress")
    assert watched(directory) == [watcher]
    run.send_command(directory, "stop")
    wait_until(lambda: is_over(directory), "the end")
    assert last(directory).outcome is Outcome.STOPPED


@pytest.mark.campaign
def test_several_workers_stop_at_a_loss_that_is_not_a_number(engines: list["subprocess.Popen[str]"]) -> None:
    directory = run.create(TOGETHER.replace(optimizer="sgd", learning_rate=1e20, keep_alive="off"))
    engines.append(start_engine(directory))

    assert engines[0].wait(600) == 1
    for each in (directory, directory / "workers" / "1"):
        ended = last(each)
        assert ended.outcome is Outcome.FAILED
        assert "of step 1 is" in ended.reason
        assert "more is unknown: it is not looked for with several processes" in ended.reason
    assert not all_of(directory, Recovered)
