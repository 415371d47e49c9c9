"""Training on a stream: its epochs, its position in checkpoints, and what may be wrong with it."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch
from accel_engine.errors import DataError
from accel_engine.events import CheckpointSaved, EpochEnded, ModelBuilt, Outcome, Validated, Warned
from accel_engine.plan import Plan
from accel_engine.plan.step_counts import StepCounts, count_steps
from accel_engine.training.core import batches
from accel_engine.training.core.assembly import Assembly, _by_row
from accel_engine.training.core.batches import epoch_orders, training_batches
from accel_engine.training.core.uneven_batches import uneven_batch

from ..conftest import Gym, Trained
from .streams import ROWS, Recorded, X, Y, dataset

MODEL = """
import keras

def build():
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dropout(0.3),
                              keras.layers.Dense(3, activation="softmax")])
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
    return model
"""

KINDS = [
    pytest.param(False, None, id="unknown length"),
    pytest.param(True, None, id="known length", marks=pytest.mark.campaign),
    pytest.param(False, 5, id="five steps"),
    pytest.param(True, 14, id="two passes"),
]
"""Whether the length of the stream is known, and the steps per epoch; a pass has seven batches, the last of 8 rows."""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "net.py").write_text(MODEL)
    return Plan(
        model=f"{tmp_path / 'net.py'}:build", batch_size=32, epochs=3, shuffle="off", validation="off", xla="off"
    )


@pytest.fixture
def train(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Trains a plan on some examples."""

    def train(plan: Plan, examples: Any, validation: Any = None, **options: Any) -> Trained:
        monkeypatch.setattr(data, "load", lambda *_: dataset(examples, validation))
        return gym.train(plan, **options)

    return train


def losses(trained: Trained) -> np.ndarray:
    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    return trained.series["loss"]


@pytest.mark.parametrize(("length", "steps"), KINDS)
@pytest.mark.parametrize("replicas", [1, pytest.param(2, marks=pytest.mark.campaign)])
def test_a_stream_is_trained_on_as_its_rows_are(
    train: Any, plan: Plan, *, length: bool, steps: int | None, replicas: int
) -> None:
    if replicas == 2:
        plan = plan.replace(strategy="mirrored", virtual_cpus=2)
    epoch = steps or 7
    rows = train(plan.replace(steps_per_epoch=epoch), ROWS)
    stream = Recorded(length=length)

    trained = train(plan.replace(steps_per_epoch=steps), stream)

    np.testing.assert_allclose(losses(trained), losses(rows), atol=1e-6)
    assert [event.step for event in trained.all(EpochEnded)] == [epoch, 2 * epoch, 3 * epoch]
    passes = -(-3 * epoch // 7)
    assert stream.reads[:passes] == [(number, 0) for number in range(passes)]
    sizes = np.tile([32] * 6 + [8], passes)
    for number, ended in enumerate(trained.all(EpochEnded)):
        own = slice(number * epoch, (number + 1) * epoch)
        for name, value in ended.metrics.items():
            assert value == pytest.approx(np.average(trained.series[name][own], weights=sizes[own]), rel=1e-5), name
    built = trained.only(ModelBuilt)
    assert (built.feed, built.global_batch) == ("streamed", 32)
    assert not [warned.message for warned in trained.all(Warned) if "left out" in warned.message]


@pytest.mark.parametrize(
    ("length", "steps", "stops"),
    [
        (False, None, (7,)),
        (True, 14, (8,)),
        *(
            pytest.param(*other, marks=pytest.mark.campaign)
            for other in [(False, None, (3, 8, 17)), (True, None, (7, 8)), (False, 5, (3, 7)), (True, 14, (17,))]
        ),
    ],
)
def test_a_stream_continues_at_its_position(
    train: Any, gym: Gym, plan: Plan, *, length: bool, steps: int | None, stops: tuple[int, ...]
) -> None:
    gym.steps = 1
    plan = plan.replace(steps_per_epoch=steps, epochs=3 if steps != 14 else 2)
    whole = train(plan, Recorded(length=length))
    for stop in stops:
        stopped = train(plan, Recorded(length=length), at={stop: [("stop",)]})
        assert (stopped.ended.outcome, stopped.ended.steps) == (Outcome.STOPPED, stop)
        stream = Recorded(length=length)

        resumed = train(plan, stream, run=stopped.directory)

        np.testing.assert_array_equal(losses(resumed), losses(whole), str(stop))
        assert [event.step for event in resumed.all(EpochEnded)] == [event.step for event in whole.all(EpochEnded)]
        for ours, theirs in zip(resumed.all(EpochEnded), whole.all(EpochEnded), strict=True):
            # The sizes of an epoch's steps before the checkpoint are unknown: a smaller batch counts as the others.
            smaller = theirs.step - (steps or 7) < stop // 7 * 7
            unfinished = stop < theirs.step or (stop == theirs.step and not length and steps is None)
            exact = not (smaller and unfinished)
            assert ours.metrics == pytest.approx(theirs.metrics, rel=1e-5 if exact else 0.1), stop
        assert stream.reads[0] in {divmod(stop, 7), (stop // 7 - 1, 7)}


def test_a_finished_run_continues_with_more_epochs(train: Any, plan: Plan) -> None:
    whole = train(plan, Recorded(length=False))
    finished = train(plan.replace(epochs=2), Recorded(length=False))

    longer = train(plan, Recorded(length=False), run=finished.directory)

    np.testing.assert_array_equal(losses(longer), losses(whole))
    assert longer.all(CheckpointSaved)[-1].step == 21


def test_chunks_end_with_the_epoch_and_lose_no_batch(train: Any, gym: Gym, plan: Plan) -> None:
    gym.steps = 4
    stream = Recorded(size=10)
    trained = train(plan.replace(steps_per_epoch=9, epochs=4), stream)

    counts = [chunk.count for chunk in trained.chunks]
    assert sum(counts) == 36
    ends = np.cumsum(counts)
    assert {9, 18, 27, 36} <= set(ends.tolist())
    assert max(counts) <= 4
    rows = train(plan.replace(steps_per_epoch=36, epochs=1, batch_size=10), ROWS)
    np.testing.assert_allclose(losses(trained), losses(rows), atol=1e-6)


def test_replicas_count_what_they_cannot_divide_once(train: Any, plan: Plan, tmp_path: Path) -> None:
    """199 examples: the last batch has seven; batches of 33 are never even."""
    (tmp_path / "net.py").write_text(MODEL.replace("keras.layers.Dropout(0.3)", "keras.layers.Dropout(0.0)"))
    plan = plan.replace(epochs=2)
    alone = {size: train(plan, Recorded(Split(X[:199], Y[:199]), size=size)) for size in (32, 33)}
    shared = plan.replace(strategy="mirrored", virtual_cpus=2)

    for size, one in alone.items():
        trained = train(shared, Recorded(Split(X[:199], Y[:199]), size=size))

        np.testing.assert_allclose(losses(trained), losses(one), atol=1e-6)
        for ours, theirs in zip(trained.all(EpochEnded), one.all(EpochEnded), strict=True):
            assert ours.metrics == pytest.approx(theirs.metrics, abs=1e-5)
        assert len(losses(trained)) == 14
        assert not [warned.message for warned in trained.all(Warned) if "replicas" in warned.message]
    rows = train(shared, Split(X[:199], Y[:199]))
    np.testing.assert_allclose(losses(rows), losses(alone[32]), atol=1e-6)


@pytest.mark.parametrize("length", [pytest.param(True, marks=pytest.mark.campaign), False])
def test_a_last_batch_with_fewer_examples_than_replicas_is_a_step(
    train: Any, gym: Gym, plan: Plan, *, length: bool
) -> None:
    gym.steps = 1
    examples = Split(X[:33], Y[:33])
    plan = plan.replace(strategy="mirrored", virtual_cpus=2)
    whole = train(plan, Recorded(examples, length=length))
    assert len(losses(whole)) == 6
    assert [event.step for event in whole.all(EpochEnded)] == [2, 4, 6]

    stopped = train(plan, Recorded(examples, length=length), at={3: [("stop",)]})
    resumed = train(plan, Recorded(examples, length=length), run=stopped.directory)

    np.testing.assert_array_equal(losses(resumed), losses(whole))


@pytest.mark.parametrize("error", [ValueError("a damaged page"), DataError("pages.bin: page 9 is damaged")])
def test_an_error_of_the_stream_ends_the_run_with_its_reason(train: Any, plan: Plan, error: Exception) -> None:
    def fail(epoch: int, index: int) -> None:
        if (epoch, index) == (1, 2):
            raise error

    trained = train(plan, Recorded(before=fail))

    assert trained.ended.outcome is Outcome.FAILED
    assert str(error) in trained.ended.reason
    assert len(trained.series["loss"]) == 9
    assert [event.step for event in trained.all(EpochEnded)] == [7]


class Empty(Recorded):
    """Has batches in its first passes only.

    Args:
        passes: How many.
    """

    def __init__(self, passes: int) -> None:
        super().__init__(length=False)
        self._passes = passes

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        yield from super().read(epoch, position) if epoch < self._passes else ()


@pytest.mark.parametrize(
    ("passes", "steps", "reason"),
    [
        (0, None, "the data gives no batches"),
        (0, 5, "the data gives no batches"),
        (1, None, "the data gave no batches in pass 2 over it"),
        (2, 5, "the data gave no batches in pass 3 over it"),
    ],
)
def test_a_stream_without_batches_ends_the_run_with_the_reason(
    train: Any, plan: Plan, passes: int, steps: int | None, reason: str
) -> None:
    trained = train(plan.replace(steps_per_epoch=steps), Empty(passes))

    assert (trained.ended.outcome, trained.ended.reason) == (Outcome.FAILED, reason)
    assert len(trained.series.get("loss", ())) == 7 * passes


def test_parameter_servers_need_rows() -> None:
    with pytest.raises(DataError, match="the data is a stream: use another strategy"):
        _by_row(Recorded())


def test_rows_end_an_epoch_with_its_last_step() -> None:
    """Eleven rows are two steps of five and one of one."""
    plan = Plan(batch_size=5)
    assembly = SimpleNamespace(dataset=dataset(Split(X[:11], Y[:11])), step_counts=count_steps(plan, 11, 1), plan=plan)
    batches = training_batches(cast(Assembly, assembly))

    segments = list(batches.segments(0, 1, lambda: 1))

    assert [(segment.steps, segment.examples) for segment in segments] == [(1, 5), (1, 1)]
    batches.count(1)
    assert not batches.epoch_ended
    batches.count(1)
    assert batches.epoch_ended
    assert batches.restore(7) == (2, 1)
    assert batches.first_segment().order.shape == (1, 1, 5)


@pytest.mark.parametrize(
    ("examples", "replicas"),
    [
        (33, 2),
        *(
            pytest.param(*other, marks=pytest.mark.campaign)
            for other in [(33, 1), (199, 1), (199, 2), (200, 1), (200, 2)]
        ),
    ],
)
def test_a_stream_is_validated_on_every_example(train: Any, plan: Plan, replicas: int, examples: int) -> None:
    if replicas == 2:
        plan = plan.replace(strategy="mirrored", virtual_cpus=2)
    held_out = Split(X[:examples], Y[:examples])
    plan = plan.replace(validation="epoch", epochs=1)

    streamed, rows = (train(plan, ROWS, each) for each in (Recorded(held_out, length=False), held_out))

    assert streamed.only(Validated).metrics == pytest.approx(rows.only(Validated).metrics, rel=1e-5)


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
    monkeypatch.setattr(batches, "MAX_ROWS", 50)

    assert [step.tolist() for step in rows_of(counts, 11, first=first)] == whole[first:]


def test_the_order_of_a_long_epoch_is_generated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_ROWS", 50)
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


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("steps", [None, 2, 7, 9])
@pytest.mark.parametrize("last", ["keep", "drop"])
def test_several_epochs_have_the_orders_of_each(
    monkeypatch: pytest.MonkeyPatch, shuffle: bool, steps: int | None, last: str
) -> None:
    monkeypatch.setattr(batches, "MAX_ROWS", 50)
    counts = counts_of(14, 5, 2, steps=steps, last=last)

    def rows(epoch: int, epochs: int, first: int = 0) -> list[Any]:
        orders = epoch_orders(counts, 14, 3, epoch, epochs, first=first, shuffle=shuffle)
        return [step.tolist() for order in orders for step in order]

    assert rows(1, 4, first=1) == [step for epoch in range(1, 5) for step in rows(epoch, 1)][1:]


def test_steps_are_divided_among_their_epochs() -> None:
    plan = Plan(batch_size=5)
    assembly = SimpleNamespace(dataset=dataset(Split(X[:11], Y[:11])), step_counts=count_steps(plan, 11, 1), plan=plan)
    batches = training_batches(cast(Assembly, assembly))
    next(batches.segments(2, 1, lambda: 1, 9))

    assert [batches.divide(steps) for steps in (1, 2, 3, 9)] == [[1], [2], [2, 1], [2, 3, 3, 1]]
    batches.count(2)
    assert batches.epoch_ended
    assert batches.divide(7) == [3, 3, 1]


def test_epochs_of_whole_passes_have_numpys_permutations() -> None:
    (order,) = epoch_orders(counts_of(10, 5, steps=4), 10, 3, 2)
    expected = [np.random.default_rng([3, 2, number]).permutation(10) for number in (0, 1)]

    assert order.ravel().tolist() == np.concatenate(expected).tolist()


def test_without_shuffling_the_data_keeps_its_order() -> None:
    counts = counts_of(10, 4, steps=4)
    orders = list(epoch_orders(counts, 10, 0, 0, shuffle=False))

    assert np.concatenate([order.ravel() for order in orders]).tolist() == [*range(10), 0, 1, 2, 3]
