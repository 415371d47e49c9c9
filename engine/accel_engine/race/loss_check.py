"""Compares the first losses of two configurations of a plan, which begin with the same weights and the same batches."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CLOSE = 1e-5
"""The largest difference of losses, as a share of their mean, that comes from another order of rounding."""

LEAST_MEAN = 1e-12
"""Mean loss below which differences are shares of this instead: losses of zero have no share."""


@dataclass(frozen=True, slots=True)
class LossCheck:
    """How the first losses of a configuration compare with the reference's.

    Attributes:
        difference: The largest difference, as a share of the mean of the reference's absolute losses, so that the tiny
            loss of a small last batch does not count more than others; ``None`` if they cannot be compared.
        steps: Number of compared steps.
        is_equal: Whether they are equal to the bit.
        problem: Why they cannot be compared; empty if they can.
    """

    difference: float | None = None
    steps: int = 0
    is_equal: bool = False
    problem: str = ""

    @property
    def text(self) -> str:
        """The result in words."""
        if self.difference is None:
            return self.problem
        if self.is_equal:
            return "equal to the bit"
        if self.is_broken:
            return "finite in only one of the two"
        return "within 1e-5" if self.is_close else f"differs by {float(f'{100 * self.difference:.2g}'):g}%"

    @property
    def is_close(self) -> bool:
        """Whether they differ by no more than another order of rounding explains."""
        return self.difference is not None and self.difference <= CLOSE

    @property
    def is_broken(self) -> bool:
        """Whether one of them has losses that are not finite, and the other one has not."""
        return self.difference is not None and not math.isfinite(self.difference)


def check_losses(reference: Sequence[float], losses: Sequence[float]) -> LossCheck:
    """Compare losses of the same steps.

    Args:
        reference: Those of the reference.
        losses: Those of the configuration; of more or fewer steps, only the common ones count.
    """
    pairs = list(zip(reference, losses, strict=False))
    if not pairs:
        return LossCheck(problem="no losses to compare")
    is_equal = all(first == second or (math.isnan(first) and math.isnan(second)) for first, second in pairs)
    finite = [abs(first) for first, _ in pairs if math.isfinite(first)]
    mean = statistics.fmean(finite) if finite else 0.0
    difference = 0.0 if is_equal else max(_difference(first, second, mean) for first, second in pairs)
    return LossCheck(difference, len(pairs), is_equal)


def _difference(first: float, second: float, mean: float) -> float:
    if not (math.isfinite(first) and math.isfinite(second)):
        return 0.0 if str(first) == str(second) else math.inf
    return abs(first - second) / max(mean, LEAST_MEAN)
