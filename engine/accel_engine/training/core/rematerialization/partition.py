"""Chooses where to cut a sequence of operations into parts, so that training needs the least memory.

The inputs of every part are saved, and while its gradient is computed, all that is inside it (Chen et al., "Training
Deep Nets with Sublinear Memory Cost", 2016). Parts of equal size give the square root of the number of operations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_BOUNDS = 64
"""How many sizes of a part are tried."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a model.

    Attributes:
        inputs: Keys of the tensors that it reads.
        outputs: Sizes of the tensors that it makes, by key.
        saved: The size of the activations that stay in memory for its gradient.
    """

    inputs: frozenset[int]
    outputs: dict[int, int]
    saved: int


@dataclass(frozen=True, slots=True)
class Partition:
    """Where to cut a sequence of operations.

    Attributes:
        cuts: The first operation of each part but the first.
        saved: The largest size of all saved activations at a time.
    """

    cuts: tuple[int, ...]
    saved: int


def choose_cuts(operations: Sequence[Operation]) -> Partition:
    """The partition that saves the fewest activations; without cuts if none saves fewer than all.

    Args:
        operations: In the order in which they run.
    """
    best = Partition((), sum(each.saved for each in operations))
    crossing = _crossing(operations)
    bounds = _bounds(operations)
    tried = {_greedy(operations, crossing, each, bound) for each in _candidates(crossing) for bound in bounds}
    for cuts in sorted(tried):
        saved = saved_with(operations, cuts)
        if (saved, len(cuts)) < (best.saved, len(best.cuts)):
            best = Partition(cuts, saved)
    return best


def saved_with(operations: Sequence[Operation], cuts: Sequence[int]) -> int:
    """What is saved at a time if a sequence is cut into parts: tensors between parts, and the inside of the largest."""
    sizes = {key: size for each in operations for key, size in each.outputs.items()}
    crossing = _crossing(operations)
    between = {key for cut in cuts for key in crossing[cut]}
    edges = [0, *cuts, len(operations)]
    inside = [sum(each.saved for each in operations[first:last]) for first, last in pairwise(edges)]
    return sum(sizes[key] for key in between) + max(inside, default=0)


def _crossing(operations: Sequence[Operation]) -> list[dict[int, int]]:
    """Sizes of the tensors that are made before an operation and read by it or a later one, for each operation."""
    last = {key: index for index, each in enumerate(operations) for key in each.inputs}
    found: list[dict[int, int]] = []
    alive: dict[int, int] = {}
    for index, each in enumerate(operations):
        alive = {key: size for key, size in alive.items() if last.get(key, -1) >= index}
        found.append(dict(alive))
        alive |= each.outputs
    return found


def _candidates(crossing: list[dict[int, int]]) -> list[list[int]]:
    """Where to cut: where one tensor crosses; or, for long shortcuts and masks, where no fewer values do nearby."""
    sizes = [sum(tensors.values()) for tensors in crossing]
    inner = range(1, len(sizes))
    single = [index for index in inner if len(crossing[index]) == 1]
    low = [index for index in inner if sizes[index] <= min(sizes[max(1, index - 1) : index + 2])]
    return [single, low]


def _bounds(operations: Sequence[Operation]) -> list[int]:
    """Sizes of a part to try, from that of the largest operation to that of all."""
    smallest, whole = max((each.saved for each in operations), default=0), sum(each.saved for each in operations)
    if not smallest:
        return []
    return [int(smallest * (whole / smallest) ** (step / _BOUNDS)) for step in range(_BOUNDS)]


def _greedy(
    operations: Sequence[Operation], crossing: list[dict[int, int]], candidates: list[int], bound: int
) -> tuple[int, ...]:
    """Cut as late as a bound of each part's size allows, in its second half where the fewest values cross."""
    total, sums = 0, [0]
    for each in operations:
        total += each.saved
        sums.append(total)
    cuts: list[int] = []
    first = 0
    while total - sums[first] > bound:
        later = [index for index in candidates if index > first]
        within = [index for index in later if sums[index] - sums[first] <= bound]
        upper = [index for index in within if 2 * (sums[index] - sums[first]) >= bound] or within[-1:] or later[:1]
        if not upper:
            break
        first = min(upper, key=lambda index: (sum(crossing[index].values()), -index))
        cuts.append(first)
    return tuple(cuts)
