"""Following a run from a thread."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.errors import RunError
from accel_engine.events import Phase
from accel_engine.run import RunReader, Status, send_command
from accel_engine.run.store.database import SCHEMA_VERSION, RunDatabase
from accel_engine.run.store.steps import THROUGHPUT
from accel_tui.follower import NewState, Unreadable
from accel_tui.run_state import run_follower
from accel_tui.run_state.device_meter import MAX_UTILIZATIONS
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.run_follower import RunFollower
from accel_tui.run_state.state import RunState
from accel_tui.run_state.step_window import VisibleSteps
from tui.fake_engine import FakeEngine, dead_pid

Wait = Callable[..., None]


pytestmark = pytest.mark.usefixtures("hurried")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    one = FakeEngine()
    yield one
    one.close()


class Watched:
    """A follower in a thread, and what it has told."""

    def __init__(self, directory: Path) -> None:
        self.follower = RunFollower(directory)
        self.thread = threading.Thread(target=self.follower.run)

    @property
    def wakes(self) -> int:
        return sum(isinstance(news, NewState) for news in self.follower.told)

    @property
    def problems(self) -> list[str]:
        return [news.problem for news in self.follower.told if isinstance(news, Unreadable)]

    def latest(self) -> RunState:
        return self.follower.latest()


@contextmanager
def following(directory: Path) -> Iterator[Watched]:
    watched = Watched(directory)
    watched.thread.start()
    try:
        yield watched
    finally:
        watched.follower.stop()
        watched.thread.join(120)
        assert not watched.thread.is_alive()


class EndingApp:
    """An app that is gone at the third look."""

    looks = iter((True, True, False))

    @property
    def is_running(self) -> bool:
        return next(self.looks)


async def test_it_ends_when_nobody_is_left_to_stop_it(engine: FakeEngine, wait_until: Wait) -> None:
    engine.begin()
    app = EndingApp()
    RunFollower(engine.directory).start(app)
    wait_until(lambda: next(app.looks, None) is None)


def test_it_delivers_what_a_live_run_says(engine: FakeEngine, wait_until: Wait) -> None:
    engine.begin().build().train(30)
    with following(engine.directory) as watched:
        wait_until(lambda: watched.latest().step == 30)
        assert watched.latest().live
        engine.train(20)
        wait_until(lambda: watched.latest().step == 50)
        engine.end()
        wait_until(lambda: watched.latest().ended)
        info = watched.latest().info
        assert info
        assert info.status is Status.FINISHED  # never ended and still running


def test_one_wake_up_is_pending_at_most(engine: FakeEngine, wait_until: Wait) -> None:
    engine.begin().build()
    with following(engine.directory) as watched:
        wait_until(lambda: watched.wakes)
        watched.latest()
        for _ in range(5):
            engine.train(10)
        # Nobody takes: what more is said must not wake anybody twice.
        wait_until(lambda: watched.follower._latest.step == 50)
        assert watched.wakes <= 2
        assert watched.latest().step == 50
        engine.train(10)
        wait_until(lambda: watched.wakes == 3)


def test_an_engine_that_dies_without_a_word_is_lost(wait_until: Wait) -> None:
    engine = FakeEngine(pid=dead_pid())
    engine.begin().build().train(30)
    with following(engine.directory) as watched:
        wait_until(lambda: watched.latest().lost)
        assert (watched.latest().step, watched.latest().live) == (30, False)
    engine.close()


def test_a_newer_format_is_refused_in_words(engine: FakeEngine) -> None:
    engine.begin()
    connection = RunDatabase(engine.directory)
    connection.execute("UPDATE main.meta SET value = ? WHERE key = 'schema'", (SCHEMA_VERSION + 1,))
    connection.close()
    with following(engine.directory) as watched:
        watched.thread.join(120)
        assert "newer accel-tui" in watched.problems[0]


def test_a_directory_without_a_run_is_told(tmp_path: Path) -> None:
    with following(tmp_path) as watched:
        watched.thread.join(120)
        assert "no run in" in watched.problems[0]


def test_a_disk_that_fails_for_a_while_is_told_once_and_tried_again(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, wait_until: Wait
) -> None:
    tries = []

    def fail(reader: RunReader) -> None:
        tries.append(reader)
        raise RunError("disk I/O error")

    engine.begin().build().train(10)
    with monkeypatch.context() as data_problem:
        data_problem.setattr(RunReader, "poll", fail)
        with following(engine.directory) as watched:
            wait_until(lambda: len(tries) >= 3)
            data_problem.undo()
            wait_until(lambda: watched.latest().step == 10)
            assert watched.problems == ["disk I/O error"]


def test_that_the_disk_is_back_is_told_also_if_nothing_is_new(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, wait_until: Wait
) -> None:
    def fail(reader: RunReader) -> None:
        raise RunError("disk I/O error")

    engine.begin().build().train(10)
    engine.end()
    with following(engine.directory) as watched:
        wait_until(lambda: watched.latest().ended)
        with monkeypatch.context() as data_problem:
            data_problem.setattr(RunReader, "poll", fail)
            wait_until(lambda: watched.problems)
        wait_until(lambda: watched.follower.told[-1] == NewState())


def test_an_ended_run_of_many_chunks_opens_with_all_its_steps(engine: FakeEngine, wait_until: Wait) -> None:
    engine.begin().build()
    for _ in range(3000):
        engine.train(10, seconds=0.001)
        engine.writer._database.execute(
            "INSERT INTO main.sample (time, device, readings) VALUES (0, 'cpu:0', '{\"utilization\": [5.0, \"%\"]}')"
        )
    engine.end()
    with following(engine.directory) as watched:
        wait_until(lambda: watched.latest().step == 30_000)
        assert watched.latest().curves["loss"].end_step == 30_000
        assert watched.latest().meters["cpu:0"].utilizations == (5.0,) * MAX_UTILIZATIONS


def test_a_run_of_many_epochs_opens_with_all_that_it_has_said(
    engine: FakeEngine, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_follower, "EVENTS", 7)
    engine.begin().build()
    for _ in range(50):
        engine.train(engine.steps_per_epoch, chunk=engine.steps_per_epoch)
        engine.end_epoch()
    engine.enter(Phase.PAUSED)
    send_command(engine.directory, "pause")
    assert engine.answer_commands() == ["pause"]
    engine.enter(Phase.CHECKPOINTING)
    with closing(RunReader(engine.directory)) as reader:
        whole = apply_update(RunState(), reader.poll())
    with following(engine.directory) as watched:
        wait_until(lambda: watched.latest().step == whole.step)
        state = watched.latest()
    assert (state.marks, state.validation, state.epoch) == (whole.marks, whole.validation, whole.epoch)
    assert (state.phase, state.training_paused, state.notices) == (whole.phase, True, whole.notices)


def record(engine: FakeEngine, steps: int, chunk: int = 500) -> None:
    """Take steps whose loss is their number."""
    for first in range(engine.step, engine.step + steps, chunk):
        engine.chunk(np.arange(first, min(first + chunk, engine.step + steps)), seconds=0.001)


def test_a_part_that_is_looked_at_is_read_step_by_step_and_kept_up_to_date(
    engine: FakeEngine, wait_until: Wait
) -> None:
    engine.begin().build()
    record(engine, 200_000)
    with following(engine.directory) as watched:
        wait_until(lambda: watched.latest().step == 200_000)
        assert watched.latest().curves["loss"].width > 1
        watched.follower.load_visible_steps(VisibleSteps(100_000, 100_050, 1, frozenset({"loss"})))
        wait_until(lambda: watched.latest().visible_series)
        loss = watched.latest().visible_series["loss"]
        assert (loss.first_step, loss.end_step, loss.means.tolist()) == (
            100_000,
            100_050,
            list(range(100_000, 100_050)),
        )
        assert watched.latest().visible_series[THROUGHPUT].end_step == 100_050

        watched.follower.load_visible_steps(VisibleSteps(199_990, 200_090, 1, frozenset({"loss"})))
        wait_until(lambda: watched.latest().visible_series["loss"].end_step == 200_000)
        record(engine, 50)
        wait_until(lambda: watched.latest().step == 200_050)
        assert watched.latest().visible_series["loss"].means.tolist() == list(range(199_990, 200_050))

        engine.begin(first_step=199_995)
        engine.chunk([-1.0, -1.0])
        wait_until(lambda: watched.latest().step == 199_997)
        assert watched.latest().visible_series["loss"].means.tolist() == [*range(199_990, 199_995), -1, -1]

        watched.follower.load_visible_steps(None)
        wait_until(lambda: not watched.latest().visible_series)


def test_what_a_part_that_cannot_be_read_hides_is_shown_once_it_can(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, wait_until: Wait
) -> None:
    failures: list[object] = []

    def fail(*wanted: object) -> None:
        failures.append(wanted)
        raise RunError("disk I/O error")

    engine.begin().build().train(10)
    with following(engine.directory) as watched:
        wait_until(lambda: watched.latest().step == 10)
        with monkeypatch.context() as data_problem:
            data_problem.setattr(RunReader, "step_range", fail)
            watched.follower.load_visible_steps(VisibleSteps(0, 100, 1, frozenset({"loss"})))
            wait_until(lambda: failures)
            engine.train(10)
            # The look that fails next may have begun before those steps were there; the one after it did not.
            seen = len(failures) + 2
            wait_until(lambda: len(failures) >= seen)
        wait_until(lambda: watched.latest().visible_series)
        assert watched.latest().step == watched.latest().visible_series["loss"].end_step == 20
        assert watched.problems == ["disk I/O error"]


def test_readings_of_devices_are_read_only_while_somebody_looks_at_them(engine: FakeEngine, wait_until: Wait) -> None:
    engine.begin().build()
    for step in range(4):
        at = 1000.0 + step
        engine.writer.write_samples([Sample(at + 0.5, "cpu:0", {"utilization": Reading(10.0 * step, "%")})])
        engine.chunk([1.0], seconds=1.0, at=at)
    with following(engine.directory) as watched:
        wait_until(lambda: watched.latest().step == 4)
        assert not watched.latest().device_curves
        watched.follower.load_device_curves(frozenset({"utilization"}))
        wait_until(lambda: watched.latest().device_curves)
        assert watched.latest().device_curves["utilization"]["cpu:0"].means.tolist() == [0, 10, 20, 30]
        engine.writer.write_samples([Sample(1004.5, "cpu:0", {"utilization": Reading(70.0, "%")})])
        engine.chunk([1.0], seconds=1.0, at=1004.0)
        wait_until(lambda: watched.latest().device_curves["utilization"]["cpu:0"].end_step == 5)
        assert watched.latest().device_curves["utilization"]["cpu:0"].last_value == 70
        watched.follower.load_device_curves(frozenset())
        wait_until(lambda: not watched.latest().device_curves)
