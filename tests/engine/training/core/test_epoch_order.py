"""The order of training examples."""

import numpy as np
import pytest

from accel_engine.plan import Plan
from accel_engine.plan.estimate import StepCounts, count_steps
from accel_engine.training.core import epoch_order
from accel_engine.training.core.epoch_order import epoch_orders
from accel_engine.training.core.uneven_batches import uneven_batch


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


@pytest.mark.parametrize(("examples", "replicas"), [(100, 1), (100, 2), (100, 3), (102, 4), (100, 7), (86, 4), (5, 3)])
def test_an_epoch_takes_every_example_on_any_number_of_replicas(examples: int, replicas: int) -> None:
    """Each counts once, though several replicas may have it, and no replica has one twice."""
    counts = counts_of(examples, 7 * replicas, replicas)
    rows = rows_of(counts, examples)
    sizes = counts.step_sizes(0, counts.steps_per_epoch)

    assert (counts.dropped_examples, sum(sizes)) == (0, examples)
    assert set(flat(rows)) == set(range(examples))
    assert all(step.shape == (replicas, -(-size // replicas)) for step, size in zip(rows, sizes, strict=True))
    weights = np.zeros(examples)
    for step, size in zip(rows, sizes, strict=True):
        assert all(len(set(own.tolist())) == len(own) for own in step)
        uneven = uneven_batch(size, replicas)
        counted = np.ones(step.shape)
        counted[:, -1] = uneven.weights if uneven else 1
        np.add.at(weights, step, counted)
    np.testing.assert_allclose(weights, 1.0)


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

    assert [len(order) for order in epoch_orders(counts, 11, 0, 0)] == [10, 10, 3]


def test_a_part_has_one_size_of_batch() -> None:
    shapes = [order.shape for order in epoch_orders(counts_of(100, 16, 2, steps=15), 100, 0, 0)]

    assert shapes == [(6, 2, 8), (1, 2, 2), (6, 2, 8), (1, 2, 2), (1, 2, 8)]


def test_replicas_split_the_batches_of_one_device() -> None:
    alone, shared = (rows_of(counts_of(101, 16, replicas), 101) for replicas in (1, 2))

    for one, two in zip(alone[:-1], shared[:-1], strict=True):
        np.testing.assert_array_equal(one.ravel(), two.ravel())
    last = flat(alone[-1:])
    assert shared[-1].tolist() == [[*last[:2], last[4]], [*last[2:4], last[4]]]  # the fifth counts half on each


@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_begins_where_the_one_before_it_ended(shuffle: bool) -> None:
    counts = counts_of(11, 5, steps=2)  # three batches are a pass
    epochs = [
        [step for order in epoch_orders(counts, 11, 3, epoch, shuffle=shuffle) for step in order] for epoch in range(6)
    ]
    steps = [step for epoch in epochs for step in epoch]

    assert [len(epoch) for epoch in epochs] == [2] * 6
    assert counts.step_sizes(0, 12) == [step.size for step in steps] == [5, 5, 1] * 4
    passes = [flat(steps[first : first + 3]) for first in range(0, 12, 3)]
    assert [sorted(each) for each in passes] == [list(range(11))] * 4
    assert len({tuple(each) for each in passes}) == (4 if shuffle else 1)


def test_epochs_of_whole_passes_have_numpys_permutations() -> None:
    (order,) = epoch_orders(counts_of(10, 5, steps=4), 10, 3, 2)
    expected = [np.random.default_rng([3, 2, number]).permutation(10) for number in (0, 1)]

    assert order.ravel().tolist() == np.concatenate(expected).tolist()


def test_without_shuffling_the_data_keeps_its_order() -> None:
    counts = counts_of(10, 4, steps=4)
    orders = list(epoch_orders(counts, 10, 0, 0, shuffle=False))

    assert np.concatenate([order.ravel() for order in orders]).tolist() == [*range(10), 0, 1, 2, 3]
