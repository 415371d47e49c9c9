"""Which measured model serves best, and what formats and precisions cost and gain; without TensorFlow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from accel_engine.inference.candidate import Candidate


@dataclass(frozen=True, slots=True)
class ServingChoice:
    """The best candidate."""

    best: Candidate | None
    """The candidate with the highest throughput within the target; ``None`` if there is none."""
    fastest: Candidate | None
    """The candidate with the shortest 99th percentile; ``None`` if no latency was measured."""
    is_certain: bool
    """Whether the interval of the best candidate's 99th percentile is within the target, too; true without a target."""
    machines: int | None
    """How many machines like this one the target rate takes; ``None`` without one."""


def choose_model(
    candidates: Sequence[Candidate], target_latency: float | None, target_rate: float | None
) -> ServingChoice:
    """Choose the best candidate.

    Args:
        candidates: What was measured.
        target_latency: Seconds that the 99th percentile may be at most; ``None`` for any.
        target_rate: Examples per second that are to be served; ``None`` for none.
    """
    measured = [each for each in candidates if not each.problem]
    timed = [each for each in measured if "p99" in each.percentiles]
    fits = [each for each in timed if each.percentiles["p99"].value <= target_latency] if target_latency else measured
    best = max((each for each in fits if each.throughput), key=lambda each: each.throughput, default=None)
    fastest = min(timed, key=lambda each: each.percentiles["p99"].value, default=None)
    machines = math.ceil(target_rate / best.throughput) if target_rate and best else None
    return ServingChoice(best, fastest, _is_certain(best, target_latency), machines)


def _is_certain(best: Candidate | None, target_latency: float | None) -> bool:
    if best is None or target_latency is None:
        return True
    high = best.percentiles["p99"].high
    return high is not None and high <= target_latency


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """A model in a format and precision, compared with the first one."""

    first: Candidate
    """The first one with its best batch size."""
    other: Candidate
    """The other one with its best batch size; with any if all are beyond the target."""
    meets_target: bool
    """Whether the other one has a batch size within the target."""

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
        """Its main metric less the first's; ``None`` if they are not of the same metric and examples."""
        mine, its = self.first.metrics, self.other.metrics
        if mine is None or its is None or not mine.has_same_examples(its):
            return None
        (name, before), (other_name, after) = mine.main, its.main
        return None if name != other_name or before is None or after is None else after - before


def comparisons(candidates: Sequence[Candidate], target_latency: float | None) -> tuple[ModelComparison, ...]:
    """Compare each model, format and precision with the first: each on the device and with the batch size that is best.

    Args:
        candidates: What was measured.
        target_latency: Seconds that the 99th percentile may be at most; ``None`` for any.

    Returns:
        Empty if there is only one, or the first one could not be measured within the target.
    """
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for each in candidates:
        if not each.problem:
            groups.setdefault((each.model, each.format, each.precision), []).append(each)
    best = [(choose_model(group, target_latency, None).best, group[0]) for group in groups.values()]
    if not best or (first := best[0][0]) is None:
        return ()
    return tuple(ModelComparison(first, found or any_size, found is not None) for found, any_size in best[1:])
