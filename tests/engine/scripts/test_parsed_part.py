"""Values in a script's output as a part of its run."""

from collections.abc import Callable

import numpy as np
import pytest

from accel_engine import clock
from accel_engine.events import PartEnded, PartStarted, Validated
from accel_engine.scripts.output_parser import ParsedLine
from accel_engine.scripts.parsed_part import ParsedPart
from accel_engine.scripts.script_run import ScriptRun

from .conftest import Reports
from .test_script_run import all_of, part_ended, read


def lines(*values: dict[str, float], start: float = 100.0) -> list[ParsedLine]:
    return [ParsedLine(start + index, each) for index, each in enumerate(values)]


def losses(run: ScriptRun) -> list[float]:
    chunks = [chunk.series["loss"] for chunk in read(run)[0].chunks]
    return np.nan_to_num(np.concatenate(chunks), nan=-1.0).tolist() if chunks else []


def test_each_line_is_a_step_of_a_part_of_its_own(run: ScriptRun) -> None:
    parsed = ParsedPart(run)
    parsed.add(lines({"loss": 3.0}, {"loss": 2.0}))
    parsed.finish()

    assert losses(run) == [3.0, 2.0]
    assert [part.name for part in all_of(run, PartStarted)] == ["output"]
    assert len(all_of(run, PartEnded)) == 1


def test_a_line_may_name_its_step_and_several_lines_the_same(run: ScriptRun) -> None:
    parsed = ParsedPart(run)
    parsed.add(lines({"step": 0.0, "loss": 3.0}, {"step": 0.0, "accuracy": 0.5}, {"step": 2.0, "loss": 1.0}))
    parsed.finish()

    assert losses(run) == [3.0, -1.0, 1.0]
    (chunk,) = read(run)[0].chunks
    assert chunk.series["accuracy"][0] == 0.5


def test_values_of_a_validation_are_of_the_steps_before_them(run: ScriptRun) -> None:
    parsed = ParsedPart(run)
    parsed.add(lines({"loss": 3.0, "lr": 0.5}, {"loss": 2.0}, {"val_loss": 2.5}, {"val_accuracy": 0.5}))
    parsed.add(lines({"loss": 1.0, "val_loss": 1.5}, {"val_loss": 1.25}, start=110.0))
    parsed.finish()

    assert losses(run) == [3.0, 2.0, 1.0]
    assert {*read(run)[0].chunks[0].series} == {"loss", "learning_rate"}
    assert [(each.step, each.metrics) for each in all_of(run, Validated)] == [
        (2, {"loss": 2.5, "accuracy": 0.5}),
        (3, {"loss": 1.5}),
        (4, {"loss": 1.25}),
    ]
    (ended,) = all_of(run, PartEnded)
    assert ended.metrics == {"validation_loss": 1.25, "validation_accuracy": 0.5}


def test_a_line_of_a_validation_may_name_its_step(run: ScriptRun) -> None:
    parsed = ParsedPart(run)
    parsed.add(lines(*({"step": float(step), "loss": 1.0} for step in range(3)), {"step": 2.0, "val_loss": 0.5}))
    parsed._take()
    parsed.add(lines({"step": 3.0, "loss": 1.0}))
    parsed.finish()

    assert losses(run) == [1.0] * 4
    assert [(each.step, each.metrics) for each in all_of(run, Validated)] == [(3, {"loss": 0.5})]


def test_steps_that_go_back_are_counted_from_there_on_with_a_note(run: ScriptRun, reports: Reports) -> None:
    parsed = ParsedPart(run)
    parsed.add(lines(*({"step": float(step), "loss": float(step)} for step in (0, 1, 2, 0, 1))))
    parsed.finish()

    assert losses(run) == [0.0, 1.0, 2.0, 0.0, 1.0]
    assert [report for report in reports if "lines are counted" in report] == [
        "the output has step 0 after a later one: from here on, lines are counted"
    ]


def test_lines_during_a_fit_are_its_own_progress_and_left_out(run: ScriptRun) -> None:
    run.begin_part({"model": "cnn"})
    parsed = ParsedPart(run)
    parsed.add(lines({"loss": 3.0}))
    parsed.finish()

    assert not read(run)[0].chunks


def test_a_fit_ends_the_part_of_the_lines_before_it(run: ScriptRun) -> None:
    parsed = ParsedPart(run)
    run.begin_part({"model": "cnn"})
    run.end_part(part_ended())
    parsed.add(lines({"loss": 3.0}, {"loss": 2.0}, start=clock.now() + 1.0))
    parsed._take()
    parsed.add(lines({"loss": 1.0}, start=clock.now() + 5.0))

    fit = run.begin_part({"model": "other"})
    parsed.finish()

    assert fit.step == 3
    assert [part.name for part in all_of(run, PartStarted)] == ["cnn", "output", "other"]
    assert [part.name for part in all_of(run, PartEnded)] == ["cnn", "output"]
    assert losses(run) == [3.0, 2.0, 1.0]


def test_lines_of_a_fit_that_come_after_its_end_are_left_out(run: ScriptRun) -> None:
    parsed = ParsedPart(run)
    run.begin_part({"model": "cnn"})
    of_fit = lines({"loss": 3.0}, start=clock.now())
    run.end_part(part_ended())
    parsed.add(of_fit)
    parsed.finish()

    assert [part.name for part in all_of(run, PartStarted)] == ["cnn"]


@pytest.mark.parametrize("steps", [0, 7])
def test_the_lines_follow_the_steps_of_the_parts_before(run: ScriptRun, steps: int) -> None:
    if steps:
        run.write_chunk(0, 1.0, 2.0, {"loss": np.ones(steps)})
    parsed = ParsedPart(run)
    parsed.add(lines({"step": 0.0, "loss": 3.0}))
    parsed.finish()

    assert [part.step for part in all_of(run, PartStarted)] == [steps]
    assert len(losses(run)) == steps + 1


def test_a_value_long_after_its_step_is_left_out_with_a_note(
    run: ScriptRun, reports: Reports, wait_until: Callable[..., None]
) -> None:
    parsed = ParsedPart(run)
    parsed.add(lines({"step": 0.0, "loss": 3.0}))  # its time is long ago
    wait_until(lambda: losses(run), "the step")
    parsed.add(lines({"step": 0.0, "accuracy": 0.5}))
    parsed.add(lines({"step": 1.0, "loss": 2.0}))
    parsed.finish()

    assert losses(run) == [3.0, 2.0]
    assert "values of a step that came more than a second after it are left out" in reports
