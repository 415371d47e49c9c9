"""Which pruned trial is worth its continuation: one that later trials have shown to be among the best after all.

As in ASHA (Li et al., 2020, "A System for Massively Parallel Hyperparameter Tuning"), trials are compared at the report
at which one was pruned, and it is promoted when it is among the best 1 of :data:`FACTOR` there.
"""

from collections.abc import Collection, Mapping, Sequence

FACTOR = 3
"""One of so many trials is promoted from a rung to the next."""


def promotable(
    pruned: Collection[int], values: Mapping[int, Sequence[float]], *, maximize: bool, factor: int = FACTOR
) -> int | None:
    """The pruned trial to continue; ``None`` if none is among the best where it was pruned.

    Args:
        pruned: Numbers of the pruned trials that may be continued.
        values: The reported values of all trials by number, in order.
        maximize: Whether larger values are better.
        factor: The inverse of the share of the best.

    Returns:
        Of those with the most reports, the best one.
    """
    found = [(len(values[number]), _rank(number, values, maximize), number) for number in pruned if values.get(number)]
    among = [(-reports, rank, number) for reports, (rank, count), number in found if rank < count // factor]
    return min(among)[2] if among else None


def _rank(number: int, values: Mapping[int, Sequence[float]], maximize: bool) -> tuple[int, int]:
    """How many trials are better at a trial's last report, and how many have got there."""
    rung = len(values[number]) - 1
    there = [each[rung] for each in values.values() if len(each) > rung]
    mine = values[number][rung]
    return sum(value > mine if maximize else value < mine for value in there), len(there)
