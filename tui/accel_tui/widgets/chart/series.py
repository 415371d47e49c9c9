"""Series of a chart: named curves and points."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Literal

from accel_tui.run_state.curve import Curve

Colour = Literal["primary", "secondary", "success", "warning", "error"]
"""Theme colours of series, which can be distinguished with colour blindness."""

NOTHING = Curve()
"""An empty curve; always the same object, so that it is not drawn again."""


@dataclass(frozen=True, slots=True)
class Series:
    """A series of a chart: a line, points such as validations, or both.

    Attributes:
        name: Shown in the header if there are several series.
        curve: A value per step.
        points: Pairs of step and value, by rising step.
        style: Colour of line, points and legend.
        detail: A part of the curve at full resolution, drawn instead where it covers the visible steps.
        is_resampled: Whether the curve is not by steps, so that its values cannot be counted.
    """

    name: str
    curve: Curve = NOTHING
    points: tuple[tuple[float, float], ...] = ()
    style: Colour = "primary"
    detail: Curve = NOTHING
    is_resampled: bool = False

    def within(self, first: float, last: float) -> tuple[tuple[float, float], ...]:
        """The points from step ``first`` to ``last``, both inclusive."""
        return self.points[bisect_left(self.points, (first, -math.inf)) : bisect_right(self.points, (last, math.inf))]

    def curve_in(self, first: float, last: float) -> Curve:
        """The curve to draw for the steps from ``first`` to before ``last``."""
        covers = self.detail.first_step <= max(first, 0) and self.detail.end_step >= min(last, self.curve.end_step)
        return self.detail if covers and self.detail.end_step else self.curve


def only_grew(drawn: tuple[Series, ...], series: tuple[Series, ...]) -> bool:
    """Whether only new steps were added since a chart was drawn."""
    return len(series) == len(drawn) and all(
        new is old
        or (
            (new.name, new.points, new.style, new.detail) == (old.name, old.points, old.style, old.detail)
            and new.curve.end_step >= old.curve.end_step
            and (new.curve is old.curve or math.isfinite(old.curve.last_value))
        )
        for new, old in zip(series, drawn, strict=True)
    )
