"""The thread that writes a recorded run: what it writes, and how it ends."""

import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from accel_engine import clock
from accel_engine.events import (
    CommandAnswered,
    EpochEnded,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    Warned,
)
from accel_engine.recording import recorder_thread
from accel_engine.recording.recorder_thread import (
    PendingAnswer,
    PendingMedia,
    PendingSteps,
    QueueItem,
    RecorderThread,
)
from accel_engine.run.engine.commands import Command
from accel_engine.run.media import LoggedText
from accel_engine.training.commands.command_mailbox import CommandMailbox

from .memory_run import Run

ENDED = RunEnded(time=9.0, outcome=Outcome.FINISHED, steps=0, epochs=2, seconds=8.0)


class Recording:
    """A thread, what it writes to, and its mailbox."""

    def __init__(
        self,
        first_step: int = 0,
        left: Callable[[bool], RunEnded | None] = lambda certain: ENDED if certain else None,
        collect: Callable[[], Iterable[QueueItem]] = tuple,
    ) -> None:
        self.run, self.mailbox = Run(first_step), CommandMailbox()
        self.thread = RecorderThread(self.run, self.mailbox, left, collect)  # type: ignore[arg-type]

    def write(self, *items: QueueItem) -> Run:
        """Write items and the end; raises the error that ended it."""
        self.thread.begin()
        for item in items:
            self.thread.put(item)
        assert self.thread.finish(ENDED)
        self.thread.check()
        return self.run

    def fail(self, *items: QueueItem) -> str:
        """Write items until one fails; returns the error, which is raised once."""
        with pytest.raises(Exception) as caught:  # noqa: PT011
            self.write(*items)
        self.thread.check()
        assert not self.thread.writing
        assert self.run.is_closed
        return str(caught.value)


def steps(count: int, *, first: float = 0.0, **options: Any) -> PendingSteps:
    return PendingSteps(first, first + 1.0, count, {"loss": np.arange(float(count))}, **options)


def test_steps_follow_each_other_unless_they_say_which_they_are() -> None:
    recording = Recording(first_step=10)
    assert recording.thread.steps == 10
    run = recording.write(steps(2), steps(1, first=1.0), steps(1, first_step=20), steps(2))

    assert [chunk[0] for chunk in run.chunks] == [10, 12, 20, 21]
    assert run.chunks[1] == (12, 1.0, 2.0, {"loss": [0.0]})
    assert recording.thread.steps == 23
    (ended,) = run.events
    assert isinstance(ended, RunEnded)
    assert ended.steps == 23
    assert run.is_closed
    assert recording.thread not in recorder_thread._UNFINISHED


def test_values_are_computed_in_the_thread_until_they_cannot_be() -> None:
    calls: list[str] = []

    def computed() -> np.ndarray:
        calls.append(threading.current_thread().name)
        if len(calls) == 2:
            raise LookupError("no rate")
        return np.array([0.5])

    pending = PendingSteps(0.0, 1.0, 1, {"loss": np.ones(1), "rate": computed})
    run = Recording(first_step=4).write(pending, pending, pending)

    assert [sorted(chunk[3]) for chunk in run.chunks] == [["loss", "rate"], ["loss"], ["loss"]]
    assert calls == ["recorder"] * 2
    assert [event.message for event in run.events if isinstance(event, Warned)] == [
        "rate is missing from step 5 on, as it cannot be computed: LookupError: no rate"
    ]


def test_each_kind_of_item_is_written() -> None:
    command = Command(3, 1.0, "me@host", "stop")
    answered = CommandAnswered(time=2.0, command="stop", who="me@host", obeyed=True, answer="yes", step=1)
    epoch = EpochEnded(time=3.0, epoch=1, step=1, metrics={}, seconds=1.0)
    run = Recording().write(PendingAnswer(command, answered), epoch, PendingMedia(4, 5.0, "text", LoggedText("hello")))

    assert run.answers == [(command, True, "yes")]
    assert run.events[:2] == [answered, epoch]
    assert run.media == [(4, 5.0, "text", LoggedText("hello"))]


def test_a_failure_is_the_end_of_the_run_with_what_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: 1.0)
    epoch = EpochEnded(time=3.0, epoch=2, step=1, metrics={"loss": 0.5}, seconds=1.0)
    recording = Recording()
    monkeypatch.undo()

    assert recording.fail(steps(3), epoch, ValueError("a fault"), steps(2)) == "a fault"
    warned, ended = recording.run.events[1:]
    assert isinstance(warned, Warned)
    assert isinstance(ended, RunEnded)
    reason = "recording failed, training continued: ValueError: a fault"
    assert warned.message == reason
    assert (ended.outcome, ended.steps, ended.epochs) == (Outcome.FAILED, 3, 2)
    assert (ended.metrics, ended.reason) == ({"loss": 0.5}, reason)
    assert ended.seconds == ended.time - 1.0
    (resume,) = iter(recording.mailbox.take, None)
    assert (resume.id, resume.name) == (0, "resume")
    recording.thread.put(steps(1))
    assert recording.thread.finish(None)


def test_a_failure_before_the_first_epoch_has_none() -> None:
    recording = Recording()
    recording.fail(ValueError("a fault"))

    ended = recording.run.events[-1]
    assert isinstance(ended, RunEnded)
    assert (ended.epochs, ended.metrics) == (0, {})


def test_an_exit_of_a_schedule_is_an_error_that_can_be_caught() -> None:
    def leaves() -> np.ndarray:
        raise SystemExit(3)

    failed = Recording().fail(PendingSteps(0.0, 1.0, 1, {"rate": leaves}))

    assert "SystemExit" in failed


def test_a_thread_that_cannot_start_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    recording = Recording()

    with pytest.raises(RuntimeError, match="new thread"):
        recording.thread.begin()
    assert not recording.thread.writing
    assert recording.thread not in recorder_thread._UNFINISHED


def test_commands_are_passed_on_and_what_is_collected_is_written() -> None:
    collected: queue.SimpleQueue[QueueItem] = queue.SimpleQueue()
    phase = PhaseChanged(time=1.0, phase=Phase.TRAINING)
    collected.put(phase)
    recording = Recording(collect=lambda: [] if collected.empty() else [collected.get()])
    recording.run.pending = [Command(5, 1.0, "me@host", "pause")]
    recording.thread.begin()
    assert recording.mailbox.wait().name == "pause"
    collected.put(steps(1))
    recording.thread.put(None)
    assert recording.thread.finish(None)

    assert recording.run.events[0] is phase
    assert len(recording.run.chunks) == 1
    assert isinstance(recording.run.events[-1], RunEnded)


def test_it_asks_whether_fit_was_left_and_ends_the_run_if_so() -> None:
    asked: list[bool] = []

    def left(certain: bool) -> RunEnded | None:
        asked.append(certain)
        return ENDED

    recording = Recording(left=left)
    recording.thread.begin()
    recording.thread._done.get(timeout=120.0)

    assert asked == [False]
    assert isinstance(recording.run.events[-1], RunEnded)


def test_nobody_waits_for_a_thread_that_hangs_longer_than_given(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    recording = Recording(collect=lambda: goes_on.wait() and ())
    recording.thread.begin()

    assert recording.thread in recorder_thread._UNFINISHED
    assert not recording.thread.finish(ENDED, 0.0)
    monkeypatch.setattr(recorder_thread, "END_SECONDS", 0.0)
    assert not recording.thread.finish(ENDED)
    goes_on.set()
    recording.thread._done.get(timeout=120.0)
    assert recording.thread.finish(ENDED, 0.0)


def test_media_that_are_too_large_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise ValueError("too large")

    monkeypatch.setattr(Run, "write_media", refuse)
    run = Recording().write(PendingMedia(4, 5.0, "text", LoggedText("hello")), steps(1))

    assert len(run.chunks) == 1
    assert isinstance(first := run.events[0], Warned)
    assert first.message == "text is not recorded: too large"


def test_at_the_exit_of_a_script_its_threads_end_and_those_of_a_parent_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ending, parents = Recording(), Recording()
    monkeypatch.setattr(recorder_thread, "_UNFINISHED", {ending.thread})
    ending.thread.begin()
    recorder_thread._finish_all()
    assert isinstance(ending.run.events[-1], RunEnded)

    parents.thread.writing = True
    monkeypatch.setattr(recorder_thread, "_UNFINISHED", {parents.thread})
    recorder_thread._leave_in_child()
    assert not parents.thread.writing
    assert parents.run.is_closed
    assert not recorder_thread._UNFINISHED
