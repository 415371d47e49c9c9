"""What a run's plan and events say is due after some steps, without training."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from accel_engine.errors import PlanError
from accel_engine.events import EpochEnded, Outcome, Validated
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from accel_engine.training.progress import due_actions
from accel_engine.training.progress.due_actions import DueActions, EndTraining
from accel_engine.training.progress.timetable import Timetable
from accel_engine.training.reporting.run_reporter import RunReporter
from recorded_run import started

PLAN = Plan(model="mlp", epochs=4)


@pytest.fixture
def made() -> Iterator[Callable[..., DueActions]]:
    """Makes the progress, at a step, of a run that has validated after 10 steps, and by a command after 15."""
    with closing(RunWriter(create(PLAN))) as writer:
        writer.write_event(validated(10, 0.5))
        writer.write_event(epoch_ended(12, 0.75))
        writer.write_event(validated(15, 0.25, by_command=True))

        def make(step: int = 0, monitor: str = "validation_loss", names: Any = ("loss",), **values: Any) -> DueActions:
            agree, validates = values.pop("agree", bool), values.pop("validates", True)
            reporter = RunReporter(writer, step)
            if step:
                writer.write_event(started(first_step=step))
            return DueActions(PLAN.replace(**values), monitor, names, ("loss",), reporter, agree, validates=validates)

        yield make


def validated(step: int, loss: float, *, by_command: bool = False) -> Validated:
    return Validated(time=0.0, epoch=1, step=step, metrics={"loss": loss}, seconds=1.0, by_command=by_command)


def epoch_ended(step: int, loss: float) -> EpochEnded:
    return EpochEnded(time=0.0, epoch=1, step=step, metrics={"loss": loss}, seconds=1.0)


def at(progress: DueActions, step: int) -> DueActions:
    progress._reporter.step = step
    return progress


def refuse() -> bool:
    return False


def accept() -> bool:
    return True


def test_a_continued_run_knows_what_was_measured_before(made: Callable[..., DueActions]) -> None:
    assert made().metrics == {}
    later = made(15, patience=5)
    assert later.metrics == {"validation_loss": 0.25, "loss": 0.75}
    assert (later.best_step, later.is_best, later.best_among([10, 12])) == (15, True, 10)
    earlier = made(12)  # what came after that was discarded
    assert earlier.metrics == {"validation_loss": 0.5, "loss": 0.75}
    assert (earlier.best_step, earlier.is_best) == (10, False)


@pytest.mark.parametrize(("step", "missing"), [(0, False), (1, True), (10, False), (15, True)])
def test_only_a_planned_validation_of_the_step_is_not_missing(
    made: Callable[..., DueActions], step: int, missing: bool
) -> None:
    assert made(step, validation_every="1 step").validation_is_missing(None) is missing
    assert not made(step, validation_every="1 step", validates=False).validation_is_missing(None)


def test_nothing_is_missing_before_the_first_step(made: Callable[..., DueActions]) -> None:
    assert not made(validation_every="1 epoch").validation_is_missing(0)


@pytest.mark.parametrize(
    ("fields", "due"),
    [({}, True), ({"validation": "end"}, True), ({"validation": "off"}, False), ({"validates": False}, False)],
    ids=str,
)
def test_the_end_is_validated_and_saved(made: Callable[..., DueActions], fields: dict[str, Any], due: bool) -> None:
    progress = at(made(**fields, agree=lambda _: False), 48)
    assert progress.validation_is_due(4) is progress.last_validation_is_due is due
    assert progress.checkpoint_is_due(4, refuse)
    progress.observe(validated(48, 0.5, by_command=True))
    assert progress.validation_is_due(4) is due
    progress.observe(validated(48, 0.5))
    assert not progress.validation_is_due(4)


def test_validations_follow_the_plan_or_the_clock_of_the_chief(
    made: Callable[..., DueActions], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_step = at(made(validation_every="5 steps", agree=lambda _: False), 5)
    assert by_step.within_epochs
    assert (by_step.steps_until_next(10), by_step.validation_is_due(None), by_step.is_due_by_clock) == (5, True, False)
    by_step.observe(validated(5, 0.5))
    assert not by_step.validation_is_due(None)
    seconds = [0.0]
    monkeypatch.setattr(due_actions, "Timetable", lambda *args, **some: Timetable(*args, lambda: seconds[0], **some))
    for agrees in (False, True):
        seconds[0] = 0.0
        by_clock = made(validation_every="1 minute", checkpoint_every="1 minute", agree=lambda _, agrees=agrees: agrees)
        assert by_clock.within_epochs
        assert by_clock.steps_until_next(10) is None
        seconds[0] = 60.0
        assert by_clock.validation_is_due(None) is by_clock.checkpoint_is_due(None, refuse) is agrees
    assert not made().within_epochs


@pytest.mark.parametrize(
    ("changes", "epochs"),
    [
        ({"checkpoint_every": "2 epochs"}, [2, 2, 4, 4]),
        ({"checkpoint_every": "5 steps"}, [4] * 4),
        ({"checkpoint_every": "5 steps", "validation": "epoch", "validation_every": "3 epochs"}, [3, 3, 3, 4]),
        (
            {"checkpoint_every": "5 steps", "validation": "epoch", "validation_every": "9 epochs", "patience": 9},
            [1, 2, 3, 4],
        ),
        (
            {
                "checkpoint_every": "5 steps",
                "validation": "epoch",
                "validation_every": "9 epochs",
                "restore_best": "on",
            },
            [1, 2, 3, 4],
        ),
        ({}, [4] * 4),
    ],
)
def test_epochs_after_which_something_may_be_due(
    made: Callable[..., DueActions], changes: dict[str, Any], epochs: list[int]
) -> None:
    progress = made(**{"monitor": "loss", "validation": "off", **changes})

    assert [progress.next_epoch(epoch, refuse) for epoch in range(1, 5)] == epochs
    automatic = "checkpoint_every" not in changes
    assert [progress.next_epoch(epoch, accept) for epoch in range(1, 5)] == ([1, 2, 3, 4] if automatic else epochs)


def test_a_checkpoint_at_steps_is_due_once(made: Callable[..., DueActions]) -> None:
    progress = at(made(checkpoint_every="6 steps", agree=lambda _: False), 5)
    assert not progress.checkpoint_is_due(None, accept)
    assert at(progress, 6).checkpoint_is_due(None, refuse)
    assert not progress.checkpoint_is_due(1, accept)


def test_checkpoints_after_epochs_and_of_the_best_keep_within_their_time(made: Callable[..., DueActions]) -> None:
    for can_afford in (refuse, accept):
        progress = at(made(validation_every="5 steps"), 5)
        assert not progress.checkpoint_is_due(None, accept)
        progress.observe(validated(5, 0.5))
        assert progress.checkpoint_is_due(None, can_afford) is can_afford()
        at(progress, 10).observe(validated(10, 0.6))
        assert not progress.checkpoint_is_due(None, accept)
        assert at(progress, 12).checkpoint_is_due(1, can_afford) is can_afford()
    assert not at(made(agree=lambda _: False), 12).checkpoint_is_due(1, accept)


def test_the_best_is_saved_to_be_restored(made: Callable[..., DueActions]) -> None:
    for restore_best, saved in (("on", True), ("off", False)):
        progress = at(made(restore_best=restore_best, checkpoint_every="100 steps"), 5)
        assert not progress.must_save_best()
        progress.observe(validated(5, 0.5))
        assert progress.must_save_best() is progress.checkpoint_is_due(None, refuse) is saved
        assert at(progress, 12).checkpoint_is_due(1, accept) is False
        progress.observe(epoch_ended(12, 0.1))
        assert not progress.checkpoint_is_due(1, accept)
    by_command = at(made(restore_best="on", checkpoint_every="100 steps"), 7)
    by_command.observe(validated(7, 0.5, by_command=True))
    assert not by_command.checkpoint_is_due(None, accept)  # the command has saved it


def test_patience_ends_a_run_and_is_waited_for(made: Callable[..., DueActions]) -> None:
    progress = made(patience=1)
    assert progress.observe(validated(5, 0.5)).waited == 0
    progress.raise_if_over()
    assert progress.observe(epoch_ended(6, 0.9)).waited is None
    assert progress.observe(validated(10, 0.6)).waited == 1
    with pytest.raises(EndTraining, match="early stopping: no better validation loss in 1 validation") as ended:
        progress.raise_if_over()
    assert ended.value.outcome is Outcome.FINISHED
    assert progress.metrics == {"validation_loss": 0.6, "loss": 0.9}


def test_the_chief_decides_on_the_end(made: Callable[..., DueActions], monkeypatch: pytest.MonkeyPatch) -> None:
    made(agree=lambda _: True).raise_if_over()  # without patience or a time limit nobody asks
    made(patience=1, time_limit="1s", agree=lambda _: False).raise_if_over()
    seconds = [0.0]
    monkeypatch.setattr(due_actions, "Timetable", lambda *args, **some: Timetable(*args, lambda: seconds[0], **some))
    progress = made(time_limit="1s")
    progress.raise_if_over()
    seconds[0] = 1.0
    assert progress.is_due_by_clock
    with pytest.raises(EndTraining, match="the time limit of 1s is reached") as ended:
        progress.raise_if_over()
    assert ended.value.outcome is Outcome.STOPPED


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"validates": False}, "there is nothing to validate"),
        ({"monitor": "validation_speed"}, "speed is not measured; measured are loss"),
        ({"monitor": "speed", "names": ()}, "does not tell whether lower values are better"),
    ],
    ids=str,
)
@pytest.mark.parametrize("wanted", [{"patience": 2}, {"restore_best": "on"}], ids=str)
def test_a_metric_that_decides_must_be_measured_and_have_a_direction(
    made: Callable[..., DueActions], values: dict[str, Any], message: str, wanted: dict[str, Any]
) -> None:
    made(**values)  # where it decides on nothing
    with pytest.raises(PlanError, match=message):
        made(**values, **wanted)


def test_what_validation_measures_may_be_unknown(made: Callable[..., DueActions]) -> None:
    made(patience=2)
    made(monitor="loss", patience=2, validates=False)
    made(monitor="validation_loss", names=(), patience=2)
