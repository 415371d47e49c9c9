"""A run that continues from a step has nothing of later steps, and obeys the commands that were sent meanwhile."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import LearningRateChanged, RunStarted, Validated
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, diagnostics, send_command
from accel_engine.run.diagnostics import InputSpec, Layer, LayerTable
from accel_engine.run.engine.commands import read_answer
from accel_engine.run.media import LoggedText
from accel_engine.run.reading.reader import drop_discarded
from accel_engine.run.runs.creation import reopen
from accel_engine.run.writing import writer as writer_module
from recorded_run import started

CONTINUE: list[Callable[[RunWriter, int], None]] = [
    lambda writer, step: writer.rewind(step),
    lambda writer, step: writer.begin(started(first_step=step)),
]


@pytest.mark.parametrize("continue_from", CONTINUE, ids=["rewind", "begin"])
@pytest.mark.parametrize(("step", "left"), [(9, False), (10, True), (11, True)])
def test_what_was_stored_of_later_steps_is_deleted(
    directory: Path, writer: RunWriter, continue_from: Callable[[RunWriter, int], None], step: int, left: bool
) -> None:
    writer.write_diagnostics(InputSpec((8,), (), 1.0, 0.0, 1.0, False), 0)
    writer.write_diagnostics(LayerTable((Layer("dense", "Dense", 0, (10,), 100, 100, 1e3),), 1e3), 10)
    writer.write_media(10, 1.0, "words", LoggedText("of step 10"))

    continue_from(writer, step)

    kept = diagnostics.read(directory)
    assert kept.input_spec is not None
    assert bool(kept.layers) is left
    with closing(RunReader(directory)) as reader:
        assert bool(reader.media_list()) is left


def test_events_of_later_steps_are_not_counted() -> None:
    events = [
        Validated(time=1.0, epoch=1, step=10, metrics={"loss": 0.5}, seconds=1.0),
        LearningRateChanged(time=2.0, step=10, learning_rate=0.5),
        Validated(time=3.0, epoch=2, step=11, metrics={"loss": 0.4}, seconds=1.0),
        LearningRateChanged(time=4.0, step=11, learning_rate=0.25),
    ]
    again: RunStarted = started(first_step=10)

    assert drop_discarded([*events, again]) == [*events[:2], again]


def test_what_is_asked_between_a_reopening_and_the_engine_s_start_is_obeyed(ended: Path, writer: RunWriter) -> None:
    reopen(ended, Plan(epochs=20))
    number = send_command(ended, "stop")

    writer.begin(started())

    assert [command.id for command in writer.commands()] == [number]
    assert read_answer(ended, number) is None


def test_what_was_asked_before_a_reopening_is_refused(directory: Path, writer: RunWriter) -> None:
    writer.begin(started())
    number = send_command(directory, "stop")
    writer.close()

    reopen(directory, Plan())

    answer = read_answer(directory, number)
    assert answer is not None
    assert not answer[0]


def test_a_resumed_run_has_room_for_media_again(writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_MEDIA_BYTES", 100)
    writer.write_media(5, 1.0, "words", LoggedText("a" * 1000))
    writer.write_media(10, 1.0, "words", LoggedText("".join(map(chr, range(200, 240)))))
    with pytest.raises(RunError, match="would take more than"):
        writer.write_media(11, 1.0, "words", LoggedText("".join(map(chr, range(300, 340)))))

    writer.rewind(5)

    writer.write_media(11, 1.0, "words", LoggedText("".join(map(chr, range(300, 340)))))
