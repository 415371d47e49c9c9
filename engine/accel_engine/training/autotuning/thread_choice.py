"""Chooses the number of threads per operation of a run that begins."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

WORTHWHILE = 1.1
"""How much faster than TensorFlow's own number another one must have been, as a ratio of rates."""


class ThreadSource(StrEnum):
    """Where a number of threads comes from."""

    TENSORFLOW = "tensorflow"
    PLAN = "plan"
    ENVIRONMENT = "environment"
    EARLIER_RUNS = "earlier runs"


@dataclass(frozen=True, slots=True)
class ThreadChoice:
    """The number of threads per operation of a run.

    Attributes:
        count: The number of threads.
        default: TensorFlow's own: the number of processors.
        source: Where it comes from.
        rate: Steps per second of an earlier run with ``count`` threads; 0 unless the choice is because of it.
        default_rate: The same with ``default`` threads.
    """

    count: int
    default: int
    source: ThreadSource
    rate: float = 0.0
    default_rate: float = 0.0

    @property
    def setting(self) -> int | None:
        """The number to set in TensorFlow; ``None`` if it uses that number by itself."""
        return self.count if self.source in (ThreadSource.PLAN, ThreadSource.EARLIER_RUNS) else None


def choose(planned: int | None, of_user: int | None, default: int, rates: Mapping[int, float]) -> ThreadChoice:
    """Choose the number of threads: the plan's, the user's, or that with which earlier runs were clearly fastest.

    Args:
        planned: The plan's number; ``None`` for ``auto``.
        of_user: The number in the user's environment; ``None`` without one.
        default: TensorFlow's own number.
        rates: Steps per second of earlier runs by number of threads.
    """
    if planned is not None:
        return ThreadChoice(planned, default, ThreadSource.PLAN)
    if of_user is not None:
        return ThreadChoice(of_user, default, ThreadSource.ENVIRONMENT)
    if default in rates:
        best = max(rates, key=rates.__getitem__)
        if best != default and rates[best] / rates[default] >= WORTHWHILE:
            return ThreadChoice(best, default, ThreadSource.EARLIER_RUNS, rates[best], rates[default])
    return ThreadChoice(default, default, ThreadSource.TENSORFLOW)
