"""Answers from what was measured: which batch size is best, and how many machines a rate takes; without TensorFlow."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from accel_engine.inference.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Verdict:
    """The best candidate.

    Attributes:
        best: The one with the highest throughput within the target; ``None`` if there is none.
        fastest: The one with the shortest 99th percentile; ``None`` if no latency was measured.
        is_certain: Whether the interval of its 99th percentile is within the target, too.
        machines: How many machines like this one the target rate takes; ``None`` without one.
    """

    best: Candidate | None
    fastest: Candidate | None
    is_certain: bool
    machines: int | None


def verdict(candidates: Sequence[Candidate], target_latency: float | None, target_rate: float | None) -> Verdict:
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
    return Verdict(best, fastest, _is_certain(best, target_latency), machines)


def _is_certain(best: Candidate | None, target_latency: float | None) -> bool:
    if best is None or target_latency is None:
        return True
    high = best.percentiles["p99"].high
    return high is not None and high <= target_latency
