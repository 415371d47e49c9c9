"""Commands to a ``fit``, without one."""

from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.events import LearningRateChanged, PhaseChanged
from accel_engine.recording.fit_command_handler import FitCommandHandler
from accel_engine.recording.recorder_thread import PendingAnswer
from accel_engine.run.engine.commands import Command
from accel_engine.training.commands.command_mailbox import CommandMailbox


class Recorder:
    """A thread that reads and writes."""

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.put = self.written.append
        self.writing = True

    @property
    def told(self) -> list[object]:
        """The phases, rates and answers."""
        return [
            (each.event.command, each.event.obeyed, each.event.answer)
            if isinstance(each, PendingAnswer)
            else each.phase.value
            if isinstance(each, PhaseChanged)
            else each.learning_rate
            for each in self.written
            if isinstance(each, PendingAnswer | PhaseChanged | LearningRateChanged)
        ]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def mailbox() -> CommandMailbox:
    return CommandMailbox()


@pytest.fixture
def handler(mailbox: CommandMailbox, recorder: Recorder) -> FitCommandHandler:
    return FitCommandHandler(mailbox, recorder)  # type: ignore[arg-type]


@pytest.fixture
def model() -> Any:
    return SimpleNamespace(optimizer=SimpleNamespace(learning_rate=0.1), stop_training=False)


def post(mailbox: CommandMailbox, *names: str, argument: float | None = None) -> None:
    for number, name in enumerate(names):
        mailbox.post(Command(number, 0.0, "ann@box", name, argument))


def test_each_command_gets_its_answer(
    handler: FitCommandHandler, mailbox: CommandMailbox, recorder: Recorder, model: Any
) -> None:
    post(mailbox, "resume", "checkpoint", "validate", "learning_rate", argument=0.5)
    handler.handle(model, 1000)
    post(mailbox, "learning_rate", argument=-1.0)
    handler.handle(model, 1000)
    assert not handler.stopped
    post(mailbox, "stop")
    handler.handle(model, 2000)

    assert recorder.told == [
        ("resume", False, "the run is not paused"),
        ("checkpoint", False, "this run is trained by a script: only the script can save checkpoints"),
        ("validate", False, "this run is trained by a script: no validate command"),
        0.5,
        ("learning_rate", True, "learning rate 0.5 from step 1,000"),
        ("learning_rate", False, "the learning rate must be greater than 0"),
        ("stop", True, "stopped after step 2,000; the script decides what to save"),
    ]
    assert (model.optimizer.learning_rate, handler.learning_rate, model.stop_training) == (0.5, 0.5, True)
    assert handler.stopped == "stop requested by ann@box"


@pytest.mark.parametrize("last", ["resume", "stop"])
def test_a_pause_takes_commands_until_it_ends(
    handler: FitCommandHandler, mailbox: CommandMailbox, recorder: Recorder, model: Any, last: str
) -> None:
    post(mailbox, "pause", "pause", "checkpoint", last)
    handler.handle(model, 3)

    assert [told if isinstance(told, str) else told[:2] for told in recorder.told] == [  # type: ignore[index]
        ("pause", True),
        "paused",
        ("pause", False),
        ("checkpoint", False),
        (last, True),
        "training",
    ]


def test_a_pause_that_nobody_can_end_is_over(
    handler: FitCommandHandler, mailbox: CommandMailbox, recorder: Recorder, model: Any
) -> None:
    recorder.writing = False
    post(mailbox, "pause")
    handler.handle(model, 3)

    assert recorder.told[-1] == "training"
