import pytest

from accel_engine.errors import PlanError
from accel_engine.plan import Plan, step_counts


def test_the_last_smaller_batch_is_a_step() -> None:
    counts = step_counts.count_steps(Plan(batch_size=64, epochs=10), examples=1437, replicas=1)
    assert (counts.steps_per_epoch, counts.total_steps) == (23, 230)
    assert (counts.last_batch, counts.dropped_examples) == (1437 - 22 * 64, 0)
    assert counts.passes == 1.0
    assert counts.step_sizes(0, 23) == [64] * 22 + [29]


def test_the_last_smaller_batch_may_be_dropped() -> None:
    counts = step_counts.count_steps(Plan(batch_size=64, epochs=10, last_batch="drop"), examples=1437, replicas=1)
    assert (counts.steps_per_epoch, counts.total_steps) == (22, 220)
    assert (counts.last_batch, counts.dropped_examples) == (0, 1437 - 22 * 64)
    assert counts.passes == 1.0
    assert counts.step_sizes(3, 5) == [64, 64]


@pytest.mark.parametrize(("examples", "replicas", "last"), [(110, 2, 10), (111, 2, 11), (103, 4, 3), (107, 4, 7)])
def test_replicas_share_the_last_batch(examples: int, replicas: int, last: int) -> None:
    counts = step_counts.count_steps(Plan(batch_size=20), examples, replicas)
    assert (counts.last_batch, counts.dropped_examples) == (last, 0)
    assert counts.steps_per_epoch == 6
    assert sum(counts.step_sizes(0, counts.steps_per_epoch)) == examples
    dropping = step_counts.count_steps(Plan(batch_size=20, last_batch="drop"), examples, replicas)
    assert (dropping.last_batch, dropping.dropped_examples, dropping.steps_per_epoch) == (0, last, 5)


def test_sizes_of_steps_of_several_passes() -> None:
    counts = step_counts.count_steps(Plan(batch_size=80, steps_per_epoch=7), examples=200, replicas=2)
    assert counts.step_sizes(0, 7) == [80, 80, 40, 80, 80, 40, 80]
    assert counts.step_sizes(5, 7) == [40, 80]
    assert counts.passes == 7 / 3


def test_a_batch_larger_than_the_data_is_all_of_it() -> None:
    for last_batch in ("keep", "drop"):
        counts = step_counts.count_steps(Plan(batch_size=64, last_batch=last_batch), examples=51, replicas=1)
        assert (counts.global_batch, counts.steps_per_epoch, counts.dropped_examples) == (51, 1, 0)
    counts = step_counts.count_steps(Plan(batch_size=64), examples=51, replicas=2)
    assert (counts.global_batch, counts.steps_per_epoch, counts.dropped_examples) == (51, 1, 0)
    assert counts.per_replica_batch == 26
    counts = step_counts.count_steps(Plan(batch_size=64, last_batch="drop"), examples=51, replicas=2)
    assert (counts.global_batch, counts.steps_per_epoch, counts.dropped_examples) == (50, 1, 1)


def test_a_stream_has_its_own_batches() -> None:
    counts = step_counts.count_stream_steps(Plan(batch_size=64, epochs=3), batches=20, batch_size=32, replicas=2)
    assert (counts.per_replica_batch, counts.steps_per_epoch, counts.total_steps) == (16, 20, 60)
    assert counts.passes == 1.0


@pytest.mark.parametrize(("steps", "per_epoch", "passes"), [(None, 0, 0.0), (15, 15, 0.0)])
def test_the_steps_of_a_stream_may_be_unknown(steps: int | None, per_epoch: int, passes: float) -> None:
    plan = Plan(batch_size=64, epochs=3, steps_per_epoch=steps)
    counts = step_counts.count_stream_steps(plan, batches=None, batch_size=None, replicas=1)
    assert (counts.per_replica_batch, counts.steps_per_epoch, counts.total_steps) == (64, per_epoch, 3 * per_epoch)
    assert counts.passes == passes


def test_a_streams_batch_is_shared_by_replicas_and_micro_batches() -> None:
    with pytest.raises(PlanError, match="at least 4, one example per replica"):
        step_counts.count_stream_steps(Plan(), batches=None, batch_size=3, replicas=4)
    with pytest.raises(PlanError, match="must divide the per-replica batch of 16"):
        step_counts.count_stream_steps(Plan(micro_batches=3), batches=None, batch_size=32, replicas=2)


def test_a_batch_that_is_not_divisible_becomes_smaller() -> None:
    counts = step_counts.count_steps(Plan(batch_size=65), examples=650, replicas=2)
    assert counts.per_replica_batch == 32
    assert counts.global_batch == 64
    assert counts.step_sizes(0, counts.steps_per_epoch) == [64] * 10 + [10]


def test_steps_per_epoch_may_need_several_passes() -> None:
    counts = step_counts.count_steps(Plan(batch_size=10, epochs=3, steps_per_epoch=25), examples=100, replicas=1)
    assert counts.total_steps == 75
    assert counts.passes == 2.5


@pytest.mark.parametrize(
    ("batch", "examples", "replicas", "word"),
    [
        (1, 100, 2, "must be at least 2, one example per replica"),
        (64, 3, 4, "4 replicas need at least 4 training examples; there are 3"),
    ],
)
def test_an_impossible_batch_size_is_rejected(batch: int, examples: int, replicas: int, word: str) -> None:
    with pytest.raises(PlanError, match=word) as caught:
        step_counts.count_steps(Plan(batch_size=batch), examples, replicas)
    assert caught.value.field == "batch_size"


@pytest.mark.parametrize(
    ("batch", "examples", "words"),
    [
        (1024, 5000, ""),
        (8 * 200, 5000, ""),
        (64, 5000, "each TPU core takes 8 examples: a batch size of 1024 (128 per core) is best"),
        (64, 1000, ""),
        (
            40,
            5000,
            "pads 5 examples to a multiple of 8: a batch size of 64 is as fast, 1024 (128 per core) is best",
        ),
        (40, 1000, "a batch size of 64 is as fast"),
        (8, 8, "a TPU core pads 1 examples to a multiple of 8"),
    ],
)
def test_advice_on_the_batch_size_of_a_tpu(batch: int, examples: int, words: str) -> None:
    advice = step_counts.tpu_advice(step_counts.count_steps(Plan(batch_size=batch), examples, replicas=8), examples)
    assert words in advice
    assert bool(words) is bool(advice)


def test_indivisible_micro_batches_are_rejected() -> None:
    with pytest.raises(PlanError, match="must divide the per-replica batch of 32"):
        step_counts.count_steps(Plan(batch_size=64, micro_batches=5), 1000, replicas=2)
