"""The end of a run answers what was still asked."""

from pathlib import Path

import pytest

from accel_engine.events import CommandAnswered, Outcome, RunEnded
from accel_engine.run import RunReader, RunWriter, send_command
from accel_engine.run.engine.commands import read_answer


@pytest.mark.parametrize("outcome", [Outcome.STOPPED, Outcome.FINISHED])
def test_a_run_that_ends_answers_its_commands(
    directory: Path, writer: RunWriter, reader: RunReader, outcome: Outcome
) -> None:
    writer.begin()
    names = ("pause", "stop", "stop_now")
    numbers = [send_command(directory, name) for name in names]
    ended = RunEnded(time=9.0, outcome=outcome, steps=7, epochs=0, seconds=1.0)
    writer.end(ended)

    is_stopped = outcome is Outcome.STOPPED
    obeyed = [False, is_stopped, is_stopped]
    answers = [(each, "stopped" if each else "the run has ended") for each in obeyed]
    assert [read_answer(directory, number) for number in numbers] == answers
    *told, last = reader.poll().events
    assert last == ended
    assert [
        (event.command, event.step, (event.obeyed, event.answer))
        for event in told
        if isinstance(event, CommandAnswered)
    ] == [(name, 7, answer) for name, answer in zip(names, answers, strict=True)]
