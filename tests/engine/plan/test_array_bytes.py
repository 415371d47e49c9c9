import pytest

from accel_engine.plan import Plan, array_bytes
from accel_engine.plan.array_bytes import ModelSize
from accel_engine.plan.task_choices import OPTIMIZERS


def test_every_optimizer_has_its_slots() -> None:
    assert set(array_bytes.OPTIMIZER_SLOTS) == set(OPTIMIZERS)


@pytest.mark.parametrize(
    ("changes", "slots"),
    [
        ({}, 2),
        ({"optimizer": "sgd"}, 0),
        ({"optimizer": "sgd", "momentum": 0.9}, 1),
        ({"optimizer": "rmsprop", "momentum": 0.9}, 2),
        ({"optimizer": "lion", "ema_momentum": 0.99}, 2),
    ],
)
def test_momentum_and_moving_averages_take_slots(changes: dict[str, object], slots: int) -> None:
    assert array_bytes.optimizer_slots(Plan.from_mapping(changes)) == slots


def test_micro_batches_accumulate_gradients_and_share_the_memory_of_activations() -> None:
    plan = Plan(micro_batches=4)

    assert array_bytes.gradient_bytes(plan, 10) == 2 * 4 * 10
    assert array_bytes.activation_bytes(plan, 100, batch=8) == 2 * 100
    assert array_bytes.activation_bytes(plan, 100, batch=9) == 3 * 100


def test_a_mixed_precision_halves_activations_and_copies_weights() -> None:
    plan = Plan(precision="mixed_bfloat16")

    assert array_bytes.activation_bytes(plan, 100, batch=8) == 8 * 50
    assert array_bytes.weight_bytes(plan, 10) == (4 + 2) * 10
    assert array_bytes.slot_bytes(plan, 10) == 2 * 4 * 10


def test_a_model_without_operations_was_not_traced() -> None:
    assert not ModelSize(1, 1, saved=9).is_traced
    assert ModelSize(1, 1, saved=9, operations=9).is_traced
