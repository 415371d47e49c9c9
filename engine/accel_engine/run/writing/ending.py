"""Ends a run: answers pending commands and writes the last event."""

from typing import Protocol

from accel_engine.events import CommandAnswered, Event, Outcome, RunEnded
from accel_engine.run.engine.commands import Command


class OpenRun(Protocol):
    """A run that is being written; its methods are those of :class:`accel_engine.run.writing.writer.RunWriter`."""

    def write_event(self, event: Event) -> None:
        """Add an event."""

    def commands(self) -> list[Command]:
        """Return the commands without an answer, oldest first."""

    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Answer a command."""

    def end(self, ended: Event) -> None:
        """Write the last event and close."""


def end(run: OpenRun, ended: RunEnded) -> None:
    """Answer pending commands, write the run's last event and close the file."""
    for command in run.commands():
        obeyed = command.name in ("stop", "stop_now") and ended.outcome is Outcome.STOPPED
        answer = "stopped" if obeyed else "the run has ended"
        run.answer(command, obeyed=obeyed, answer=answer)
        run.write_event(
            CommandAnswered(
                time=ended.time, command=command.name, who=command.who, obeyed=obeyed, answer=answer, step=ended.steps
            )
        )
    run.end(ended)
