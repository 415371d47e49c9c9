"""Where a sequence of layers is cut into stages."""

from itertools import combinations, pairwise

import pytest

from accel_engine.plan.array_bytes import in_flight
from accel_engine.training.core.pipeline.cuts import SLACK, LayerCost, choose_cuts

COSTS = [LayerCost(seconds, 100 * weights, 10) for seconds, weights in [(5, 1), (1, 0), (3, 9), (2, 2), (2, 4), (4, 1)]]
CROSSING = [8, 8, 8, 8, 1, 8]


def largest(cuts: tuple[int, ...], micro_batches: int) -> float:
    """The size of the largest stage: of its shares of the time and of the memory, the larger one."""
    edges, stages = [0, *cuts, len(COSTS)], len(cuts) + 1
    held = [in_flight(stage, stages, micro_batches) for stage in range(stages)]
    memory = sum(each.weights for each in COSTS) + sum(each.activations for each in COSTS) * sum(held) / stages
    parts = [COSTS[first:last] for first, last in pairwise(edges)]
    times = [sum(each.seconds for each in part) / 17 for part in parts]
    sizes = [
        sum(each.weights + count * each.activations for each in part) / memory
        for part, count in zip(parts, held, strict=True)
    ]
    return max(*times, *sizes)


@pytest.mark.parametrize("stages", [2, 3, 4, 6])
@pytest.mark.parametrize("micro_batches", [1, 8])
def test_the_largest_stage_is_about_as_small_as_of_all_cuts(stages: int, micro_batches: int) -> None:
    cuts = choose_cuts(COSTS, CROSSING, stages, micro_batches)
    every = [largest(each, micro_batches) for each in combinations(range(1, len(COSTS)), stages - 1)]
    assert len(cuts) == stages - 1
    assert largest(cuts, micro_batches) <= SLACK * min(every)


def test_of_equal_cuts_the_one_that_the_fewest_bytes_cross_is_chosen() -> None:
    same = [
        LayerCost(0.0, 0, 0),
        LayerCost(1.0, 1, 0),
        LayerCost(0.0, 0, 0),
        LayerCost(0.0, 0, 0),
        LayerCost(1.0, 1, 0),
    ]
    assert choose_cuts(same, [9, 9, 7, 3, 5], 2, 1) == (3,)


def test_a_stage_holds_no_more_micro_batches_than_follow_it_with_itself() -> None:
    assert [in_flight(stage, 4, 8) for stage in range(4)] == [4, 3, 2, 1]
    assert [in_flight(stage, 4, 2) for stage in range(4)] == [2, 2, 2, 1]
