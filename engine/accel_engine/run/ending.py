"""Ends a run: answers pending commands and writes the last event."""

from accel_engine.events import CommandAnswered, Outcome, RunEnded
from accel_engine.run.writer import RunWriter


def end(run: RunWriter, ended: RunEnded) -> None:
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
