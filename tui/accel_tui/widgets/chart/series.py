"""What a chart shows: named curves and points."""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Literal

from accel_tui.run.curve import Curve

Colour = Literal["primary", "secondary", "success", "warning", "error"]
"""Names of the theme's colours that a series can be drawn in. People who see fewer colours tell them apart too."""

NOTHING = Curve()
"""The curve of a series that has none; always the same, so that nothing is drawn again for it."""


@dataclass(frozen=True, slots=True)
class Series:
    """One thing drawn in a chart: a line, or single points such as validations, or both.

    Attributes:
        name: Shown in the chart's first line when there is more than one series.
        curve: A value a step.
        points: Pairs of a step and a value, by rising step.
        style: Colour of line, points and legend.
        detail: A part of the curve more finely, drawn in its place where it has all that is to be seen.
        is_resampled: Whether the curve is by something else than steps, so that its values cannot be counted.
    """

    name: str
    curve: Curve = NOTHING
    points: tuple[tuple[float, float], ...] = ()
    style: Colour = "primary"
    detail: Curve = NOTHING
    is_resampled: bool = False

    def within(self, first: float, last: float) -> tuple[tuple[float, float], ...]:
        """The points of the steps from ``first`` to ``last``."""
        return self.points[bisect_left(self.points, (first, -math.inf)) : bisect_right(self.points, (last, math.inf))]

    def curve_in(self, first: float, last: float) -> Curve:
        """What to draw of the steps from ``first`` to before ``last``."""
        whole = self.detail.first <= max(first, 0) and self.detail.count >= min(last, self.curve.count)
        return self.detail if whole and self.detail.count else self.curve


def go_on(drawn: tuple[Series, ...], series: tuple[Series, ...]) -> bool:
    """Whether nothing but further steps is new since a chart was drawn."""
    return len(series) == len(drawn) and all(
        new is old
        or (
            (new.name, new.points, new.style, new.detail) == (old.name, old.points, old.style, old.detail)
            and new.curve.count >= old.curve.count
            and (new.curve is old.curve or math.isfinite(old.curve.last))
        )
        for new, old in zip(series, drawn, strict=True)
    )
