"""What a race has measured of a run's plan; the caller of the rules reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FasterPlan:
    """Changes of a plan that a race on this machine found to be faster.

    Attributes:
        changes: Fields of the plan, with their values.
        factor: By how much.
    """

    changes: Mapping[str, Any]
    factor: float
