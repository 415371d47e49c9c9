"""The order of training examples."""

import numpy as np
import pytest

from accel_engine.plan import Plan
from accel_engine.plan.estimate import StepCounts, count_steps
from accel_engine.training.core import epoch_order
from accel_engine.training.core.epoch_order import epoch_orders


def counts_of(examples: int, batch: int, replicas: int = 1, steps: int | None = None, last: str = "keep") -> StepCounts:
    return count_steps(Plan(batch_size=batch, steps_per_epoch=steps, last_batch=last), examples, replicas)


def rows_of(counts: StepCounts, examples: int, seed: int = 3, epoch: int = 0, first: int = 0) -> list[np.ndarray]:
    """The rows of each step of an epoch, ``[replicas, batch]``."""
    return [step for order in epoch_orders(counts, examples, seed, epoch, first=first) for step in order]


def flat(steps: list[np.ndarray]) -> list[int]:
    return np.concatenate([step.ravel() for step in steps]).tolist()


def test_an_epoch_uses_every_example_at_most_once() -> None:
    steps = rows_of(counts_of(100, 16, replicas=2, last="drop"), 100)

    assert [step.shape for step in steps] == [(2, 8)] * 6
    assert len(set(flat(steps))) == 96


@pytest.mark.parametrize(("replicas", "left"), [(1, 0), (2, 0), (3, 1), (4, 0), (7, 2)])
def test_an_epoch_leaves_out_fewer_examples_than_replicas(replicas: int, left: int) -> None:
    counts = counts_of(100, 7 * replicas, replicas)
    rows = rows_of(counts, 100)

    assert counts.dropped_examples == left
    assert len(flat(rows)) == len(set(flat(rows))) == 100 - left
    assert [step.shape for step in rows[:-1]] == [(replicas, 7)] * (len(rows) - 1)
    assert rows[-1].shape[0] == replicas
    assert rows[-1].shape[1] <= 7
    assert counts.step_sizes(0, counts.steps_per_epoch) == [step.size for step in rows]


def test_epochs_differ_and_depend_on_the_seed() -> None:
    counts = counts_of(100, 16)
    first = flat(rows_of(counts, 100))

    assert first != flat(rows_of(counts, 100, epoch=1))
    assert first != flat(rows_of(counts, 100, seed=4))
    assert first == flat(rows_of(counts, 100))


@pytest.mark.parametrize(("examples", "last"), [(10, "drop"), (10, "keep"), (13, "keep")])
def test_an_epoch_longer_than_the_data_starts_another_pass(examples: int, last: str) -> None:
    counts = counts_of(examples, 5, steps=8, last=last)
    rows = rows_of(counts, examples)
    steps_per_pass = -(-examples // 5)

    assert len(rows) == 8
    passes = [rows[first : first + steps_per_pass] for first in range(0, 8 - steps_per_pass + 1, steps_per_pass)]
    for each in passes:
        assert sorted(flat(each)) == list(range(examples))
    assert flat(passes[0]) != flat(passes[1])
    assert counts.step_sizes(0, 8) == [step.size for step in rows]


@pytest.mark.parametrize("last", ["drop", "keep"])
@pytest.mark.parametrize("first", [0, 1, 2, 3, 11, 21, 22])
def test_an_epoch_continues_at_any_step(monkeypatch: pytest.MonkeyPatch, first: int, last: str) -> None:
    counts = counts_of(11, 5, steps=23, last=last)
    whole = [step.tolist() for step in rows_of(counts, 11)]
    monkeypatch.setattr(epoch_order, "MAX_ROWS", 50)

    assert [step.tolist() for step in rows_of(counts, 11, first=first)] == whole[first:]


def test_the_order_of_a_long_epoch_is_generated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_order, "MAX_ROWS", 50)
    counts = counts_of(11, 5, steps=23, last="drop")

    assert [len(order) for order in epoch_orders(counts, 11, 0, 3)] == [10, 10, 3]


def test_a_part_has_one_size_of_batch() -> None:
    shapes = [order.shape for order in epoch_orders(counts_of(100, 16, 2, steps=15), 100, 0, 0)]

    assert shapes == [(6, 2, 8), (1, 2, 2), (6, 2, 8), (1, 2, 2), (1, 2, 8)]


def test_replicas_split_the_batches_of_one_device() -> None:
    alone, shared = (rows_of(counts_of(101, 16, replicas), 101) for replicas in (1, 2))

    for one, two in zip(alone[:-1], shared[:-1], strict=True):
        np.testing.assert_array_equal(one.ravel(), two.ravel())
    assert flat(alone[-1:])[:4] == flat(shared[-1:])  # but for the fifth, which two replicas cannot share


def test_without_shuffling_the_data_keeps_its_order() -> None:
    counts = counts_of(10, 4, steps=4)
    orders = list(epoch_orders(counts, 10, 0, 0, shuffle=False))

    assert np.concatenate([order.ravel() for order in orders]).tolist() == [*range(10), 0, 1, 2, 3]
