"""How far a run has come, and telling the run of it."""

from accel_engine import clock
from accel_engine.events import CommandAnswered, Event, Phase, PhaseChanged
from accel_engine.run.commands import Command
from accel_engine.run.writer import RunWriter


class RunReporter:
    """Where a training run stands.

    Args:
        run: Where everything is written.
        step: The step of the checkpoint that training goes on from; 0 for none.

    Attributes:
        run: As given.
        step: Steps taken.
        epochs: Epochs ended.
        phase: What goes on.
    """

    def __init__(self, run: RunWriter, step: int) -> None:
        self.run = run
        self.step = step
        self.epochs = 0
        self.phase = Phase.STARTING

    def enter(self, phase: Phase, detail: str = "") -> None:
        """Begin a phase."""
        self.phase = phase
        self.say(PhaseChanged, phase=phase, detail=detail)

    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Answer a command."""
        self.run.answer(command, obeyed=obeyed, answer=answer)
        self.say(CommandAnswered, command=command.name, who=command.who, obeyed=obeyed, answer=answer, step=self.step)

    def say(self, kind: type[Event], **values: object) -> None:
        """Write an event of now."""
        self.run.event(kind.parse({"time": clock.now(), **values}))
