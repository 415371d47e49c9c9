"""What changes of a plan are for."""

import pytest

from accel_engine.advice.cures.cure_kinds import QUANTITIES, Quantity, check_can_be_tried, judged_by, quantity_of
from accel_engine.errors import RunError
from accel_engine.plan import SPECS


def test_the_table_has_fields_of_the_plan() -> None:
    assert set(QUANTITIES) <= set(SPECS)


@pytest.mark.parametrize(
    ("changes", "on_cpu", "quantity"),
    [
        (["xla"], True, Quantity.SPEED),
        (["learning_rate"], True, Quantity.LEARNING),
        (["remat"], True, Quantity.MEMORY),
        (["micro_batches"], False, Quantity.MEMORY),
        (["micro_batches"], True, Quantity.SPEED),
        (["batch_size", "learning_rate"], False, Quantity.SPEED),
        (["remat", "xla"], False, Quantity.SPEED),
        (["learning_rate", "checkpoint_every"], False, Quantity.LEARNING),
        (["scale"], False, Quantity.LEARNING),
        (["validation_every", "checkpoint_every"], False, Quantity.INTERVALS),
        (["xla", "checkpoint_every"], False, Quantity.SPEED),
    ],
)
def test_what_is_compared_follows_from_the_fields(changes: list[str], on_cpu: bool, quantity: Quantity) -> None:
    assert quantity_of(changes, on_cpu=on_cpu) is quantity


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([], "changes no field"),
        (["loss_rate"], "no field loss_rate"),
        (["patience"], "--patience changes nothing within a step"),
        (["data", "learning_rate"], "changes the examples"),
    ],
)
def test_what_no_step_can_show_is_refused(changes: list[str], words: str) -> None:
    with pytest.raises(RunError, match=words):
        check_can_be_tried(changes)


@pytest.mark.parametrize(
    ("changes", "purpose", "judge"),
    [
        (["remat"], None, None),
        (["micro_batches"], Quantity.MEMORY, None),
        (["batch_size"], Quantity.MEMORY, None),
        (["batch_size"], Quantity.LEARNING, Quantity.LEARNING),
        (["batch_size"], None, Quantity.SPEED),
        (["validation_every"], None, Quantity.SPEED),
        (["micro_batches"], Quantity.SPEED, Quantity.SPEED),
        (["gradient_norm"], None, None),
        (["gradient_norm"], Quantity.LEARNING, None),
        (["clip_norm"], None, Quantity.LEARNING),
        (["label_smoothing"], Quantity.LEARNING, None),
        (["class_weight"], None, None),
        (["augmentation"], Quantity.LEARNING, None),
        (["validation_split"], None, None),
    ],
)
def test_what_tells_that_a_run_does_worse(changes: list[str], purpose: Quantity | None, judge: Quantity | None) -> None:
    assert judged_by(changes, on_cpu=False, purpose=purpose) is judge
