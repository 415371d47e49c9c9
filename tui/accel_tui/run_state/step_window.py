"""The range of steps that charts show: an immutable value with zooming and scrolling."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

MIN_SPAN = 16
"""Minimum number of steps in a window."""

FOLLOWED = 1000
"""Steps of the window that follows the end, if the whole run was shown before."""

_JUMPS = 8  # a following window moves by this part of its span, so that most frames keep the axis


@dataclass(frozen=True, slots=True)
class StepWindow:
    """A range of steps. ``StepWindow()`` is the whole run."""

    span: int | None = None
    """Number of steps; ``None`` for the whole run, however long."""
    first: int | None = None
    """The first step; ``None`` to follow the last steps."""

    def bounds(self, steps: int) -> tuple[int, int] | None:
        """First step, and the step after the last, for a run of ``steps`` steps; ``None`` for the whole run."""
        if self.span is None:
            return None
        if self.first is not None:
            return self.first, self.first + self.span
        jump = max(1, self.span // _JUMPS)
        last = max(self.span, -(-steps // jump) * jump)
        return last - self.span, last

    @property
    def follows(self) -> bool:
        """Whether it shows the last steps and leaves out the first ones."""
        return self.span is not None and self.first is None

    @classmethod
    def around(cls, steps: int, first: int, stop: int) -> "StepWindow":
        """The window of a range of steps, with a quarter of it on both sides; it does not follow.

        Args:
            steps: Steps of the run.
            first: The first step of the range.
            stop: The step after its last.
        """
        margin = max((stop - first) // 4, MIN_SPAN // 2)
        low, high = max(0, first - margin), min(steps, stop + margin)
        return cls() if (low, high) == (0, steps) else cls(max(MIN_SPAN, high - low), low)

    def zoomed(self, steps: int, factor: float, around: float | None = None) -> "StepWindow":
        """Zoom to ``factor`` times as many steps.

        Args:
            steps: Steps of the run.
            factor: Below 1 to zoom in.
            around: The step that keeps its place; if omitted, the middle, or the end if that is visible.
        """
        if self.span is not None and self.span >= steps:  # a window longer than the run shows all of it
            return StepWindow().zoomed(steps, factor, around)
        shown = steps if self.span is None else self.span
        span = max(MIN_SPAN, round(shown * factor))
        if span >= steps:
            return self if factor < 1 else StepWindow()
        if around is not None:
            low, high = self.bounds(steps) or (0, steps)
            share = min(max((around - low) / (high - low), 0.0), 1.0)
            return _within(steps, round(low + share * (shown - span)), span)
        if self.first is None:
            return StepWindow(span)
        return _within(steps, self.first + (shown - span) // 2, span)

    def moved(self, steps: int, share: float) -> "StepWindow":
        """Scroll by a share of the span, to earlier steps if negative; at the end, follow."""
        return self.shifted(steps, round(share * (self.span or 0)))

    def shifted(self, steps: int, by: int) -> "StepWindow":
        """Scroll by steps, to earlier ones if negative; at the end, follow."""
        bounds = self.bounds(steps)
        if self.span is None or bounds is None:
            return self
        return _within(steps, bounds[0] + by, self.span)

    def scaled(self, factor: float) -> "StepWindow":
        """The same window where one step has become ``factor`` steps."""
        first = None if self.first is None else round(self.first * factor)
        return self if self.span is None else StepWindow(max(MIN_SPAN, round(self.span * factor)), first)

    def with_step(self, steps: int, step: int) -> "StepWindow":
        """Scroll as little as needed to show a step."""
        low, high = self.bounds(steps) or (0, steps)
        return self.shifted(steps, min(step - low, 0) or max(step - high + 1, 0)) if low < high else self

    def at_beginning(self) -> "StepWindow":
        """Scroll to the first steps."""
        return StepWindow(self.span or FOLLOWED, 0)

    def at_end(self) -> "StepWindow":
        """Scroll to the last steps, and follow."""
        return StepWindow(self.span or FOLLOWED)


@dataclass(frozen=True, slots=True)
class VisibleSteps:
    """A range of steps to load at full resolution."""

    first: int
    """Its first step."""
    stop: int
    """The step after its last."""
    width: int
    """Steps per bucket that suffice, a power of two."""
    series: frozenset[str]
    """Names of the series."""


def steps_to_load(bounds: tuple[int, int] | None, dots: int, known: int, series: Iterable[str]) -> VisibleSteps | None:
    """The steps to load for drawing a window exactly, with a margin for scrolling.

    Args:
        bounds: First step, and the step after the last; ``None`` for the whole run.
        dots: Horizontal dots of a chart.
        known: Steps per bucket that are loaded already; 1 if all steps are.
        series: Names of the series.

    Returns:
        ``None`` if nothing has to be loaded.
    """
    if bounds is None or dots < 1:
        return None
    first, last = bounds
    width = 1 << max(0, math.floor(math.log2((last - first) / dots)) if last - first > dots else 0)
    margin = (last - first) // 2
    return VisibleSteps(max(0, first - margin), last + margin, width, frozenset(series)) if width < known else None


def describe_window(window: StepWindow, steps: int) -> str:
    """The visible steps in words; empty for the whole run."""
    bounds = window.bounds(steps)
    if bounds is None:
        return ""
    return f"the last {window.span:,} steps" if window.follows else f"steps {bounds[0]:,} to {bounds[1] - 1:,}"


def _within(steps: int, first: int, span: int) -> StepWindow:
    return StepWindow(span) if first + span >= steps else StepWindow(span, max(0, first))
