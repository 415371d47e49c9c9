from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.errors import PlanError
from accel_engine.events import EpochEnded, to_stored
from accel_engine.plan import Plan
from accel_engine.run import RunReader, reopen
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.run.history.history import stored_history
from accel_engine.run.runs.plan_changes import CHANGEABLE, check_changes
from accel_engine.run.store.database import RunDatabase
from example_events import model_built
from field_values import away, with_needs

PLAN = Plan(model="mlp")
"""What a run was trained with."""

EPOCHS = tuple(
    EpochEnded(time=1.0, epoch=epoch, step=step, metrics={}, seconds=1.0) for epoch, step in ((1, 5), (2, 11))
)
"""Events of epochs of 5 and 6 steps."""


def save(directory: Path, step: int) -> None:
    """Put there what marks a checkpoint."""
    (directory / CHECKPOINTS).mkdir()
    (directory / CHECKPOINTS / f"step-{step}.index").touch()


@pytest.mark.parametrize("field", PLAN.to_mapping())
def test_every_field_may_change_or_is_refused_by_name(field: str) -> None:
    changed = PLAN.replace(**with_needs({field: away(field)}))
    before = changed.replace(**{field: getattr(PLAN, field)})
    if field in CHANGEABLE:
        check_changes(before.to_mapping(), changed)
        return
    with pytest.raises(PlanError, match="start a new run") as caught:
        check_changes(before.to_mapping(), changed)
    assert caught.value.field == field
    changeable = str(caught.value).partition("; start a new run, or change only --")[2].split(", --")
    assert {name.replace("-", "_") for name in changeable} == CHANGEABLE


def test_a_field_that_is_missing_counts_as_its_default() -> None:
    check_changes({"model": PLAN.model}, PLAN)


def test_a_run_with_a_checkpoint_is_reopened_only_with_a_plan_that_goes_with_it(ended: Path) -> None:
    save(ended, 7)
    with closing(RunReader(ended)) as reader:
        plan = reader.info().plan
    assert plan is not None
    with pytest.raises(PlanError, match="batch_size"):
        reopen(ended, plan.replace(batch_size=32))

    reopen(ended, plan.replace(epochs=99))


@pytest.mark.parametrize(("step", "epochs", "epoch"), [(164, 1, 2), (200, 1, 2), (301, 3, 4)])
def test_a_run_that_is_past_an_epoch_does_not_go_on_to_it(directory: Path, step: int, epochs: int, epoch: int) -> None:
    save(directory, step)
    with closing(RunDatabase(directory)) as connection:
        connection.add_event(1.0, "model_built", to_stored(model_built(steps_per_epoch=100)))
        connection.execute("UPDATE main.meta SET value = 0 WHERE key = 'pending'")  # nobody took it up in time
    with pytest.raises(PlanError, match=f"already trained: the checkpoint is of epoch {epoch}; increase --epochs"):
        reopen(directory, Plan(model="cnn", epochs=epochs))

    reopen(directory, Plan(model="cnn", epochs=epoch))  # be it only for the last validation


def test_a_finished_run_over_a_stream_of_unknown_length_needs_more_epochs(ended: Path) -> None:
    save(ended, 11)
    with closing(RunDatabase(ended)) as connection:
        assert [stored_history(connection).trained_epochs(step) for step in (0, 3)] == [
            0,
            0.5,
        ]  # as before a model is built
        for event in (model_built(steps_per_epoch=0), *EPOCHS):
            connection.add_event(1.0, event.kind(), to_stored(event))
        assert [stored_history(connection).trained_epochs(step) for step in (0, 3, 5, 9, 11, 12)] == [
            0,
            0.5,
            1,
            1.5,
            2,
            2.5,
        ]
        connection.set_meta(plan=Plan(epochs=2).to_json())
    with pytest.raises(PlanError, match="already trained; increase --epochs"):
        reopen(ended, Plan(epochs=2))

    reopen(ended, Plan(epochs=3))


def test_a_run_without_a_checkpoint_begins_anew_with_any_plan(ended: Path) -> None:
    reopen(ended, Plan(batch_size=32))
