"""Compares formats and precisions: what each costs in metrics, and gains in speed and size; without TensorFlow."""

from collections.abc import Sequence
from dataclasses import dataclass

from accel_engine.inference.candidate import Candidate
from accel_engine.inference.verdict import verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """A model in a format and precision, compared with the first one.

    Attributes:
        first: The first one with its best batch size.
        other: The other one with its best batch size; with any if none is within the target.
        meets_target: Whether one is.
    """

    first: Candidate
    other: Candidate
    meets_target: bool

    @property
    def throughput(self) -> float:
        """The other's throughput in parts of the first's."""
        return self.other.throughput / self.first.throughput

    @property
    def size(self) -> float | None:
        """The size of its files in parts of the first's; ``None`` if unknown."""
        return self.other.size / self.first.size if self.other.size and self.first.size else None

    @property
    def metric_difference(self) -> float | None:
        """What its main metric is more than the first's; ``None`` if they are not of the same metric and examples."""
        mine, its = self.first.metrics, self.other.metrics
        if mine is None or its is None or not mine.has_same_examples(its):
            return None
        (name, before), (other_name, after) = mine.main, its.main
        return None if name != other_name or before is None or after is None else after - before


def comparisons(candidates: Sequence[Candidate], target_latency: float | None) -> tuple[Comparison, ...]:
    """Compare each model, format and precision with the first: each on the device and with the batch size that is best.

    Args:
        candidates: What was measured.
        target_latency: Seconds that the 99th percentile may be at most; ``None`` for any.

    Returns:
        None if there is only one, or the first one could not be measured within the target.
    """
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for each in candidates:
        if not each.problem:
            groups.setdefault((each.model, each.format, each.precision), []).append(each)
    best = [(verdict(group, target_latency, None).best, group[0]) for group in groups.values()]
    if not best or (first := best[0][0]) is None:
        return ()
    return tuple(Comparison(first, found or any_size, found is not None) for found, any_size in best[1:])
