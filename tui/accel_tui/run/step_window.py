"""Which steps of a run the charts of a screen show: one immutable value, and what keys make of it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

NARROWEST = 16
"""The fewest steps that a window shows."""

FOLLOWED = 1000
"""Steps of the window that follows the end, where the whole run was shown before."""

_JUMPS = 8  # a window that follows the end moves by this part of itself, so that most frames leave the axis alone


@dataclass(frozen=True, slots=True)
class StepWindow:
    """A window on the steps of a run. ``Window()`` shows all of them.

    Attributes:
        span: How many steps it shows; ``None`` for the whole run, however long it gets.
        first: The first of them; ``None`` for the last steps that there are.
    """

    span: int | None = None
    first: int | None = None

    def bounds(self, steps: int) -> tuple[int, int] | None:
        """The first step that it shows of a run with so many steps, and the step after the last; ``None`` for all."""
        if self.span is None:
            return None
        if self.first is not None:
            return self.first, self.first + self.span
        jump = max(1, self.span // _JUMPS)
        last = max(self.span, -(-steps // jump) * jump)
        return last - self.span, last

    @property
    def follows(self) -> bool:
        """Whether it goes along with the last steps, and leaves out the first ones."""
        return self.span is not None and self.first is None

    def zoomed(self, steps: int, factor: float, around: float | None = None) -> "StepWindow":
        """Show ``factor`` times as many steps.

        Args:
            steps: How many the run has.
            factor: Below 1 to see fewer.
            around: The step that stays where it is; when left out, about the middle does, or the end if the end is
                there now.
        """
        if self.span is not None and self.span >= steps:  # a window that is longer than the run shows all of it
            return StepWindow().zoomed(steps, factor, around)
        shown = steps if self.span is None else self.span
        span = max(NARROWEST, round(shown * factor))
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
        """Look at later steps, by this share of what is shown, or at earlier ones; from the end on, follow it."""
        return self.shifted(steps, round(share * (self.span or 0)))

    def shifted(self, steps: int, by: int) -> "StepWindow":
        """Look at steps that are so many later, or earlier where it is below 0; from the end on, follow it."""
        bounds = self.bounds(steps)
        if self.span is None or bounds is None:
            return self
        return _within(steps, bounds[0] + by, self.span)

    def scaled(self, factor: float) -> "StepWindow":
        """Look at the same where what was one step is ``factor`` steps now."""
        first = None if self.first is None else round(self.first * factor)
        return self if self.span is None else StepWindow(max(NARROWEST, round(self.span * factor)), first)

    def with_step(self, steps: int, step: int) -> "StepWindow":
        """Move no more than needed for a step to be seen."""
        low, high = self.bounds(steps) or (0, steps)
        return self.shifted(steps, min(step - low, 0) or max(step - high + 1, 0)) if low < high else self

    def at_beginning(self) -> "StepWindow":
        """Look at the first steps."""
        return StepWindow(self.span or FOLLOWED, 0)

    def at_end(self) -> "StepWindow":
        """Look at the last steps, also when more of them are taken."""
        return StepWindow(self.span or FOLLOWED)


@dataclass(frozen=True, slots=True)
class VisibleSteps:
    """A part of a run that somebody looks at closely.

    Attributes:
        first: Its first step.
        last: The step after its last.
        width: Steps that may be drawn as one, a power of two.
        series: What is looked at.
    """

    first: int
    last: int
    width: int
    series: frozenset[str]


def part_of(bounds: tuple[int, int] | None, dots: int, known: int, series: Iterable[str]) -> VisibleSteps | None:
    """What has to be read to draw a window exactly, and some of what is beside it, in case it moves.

    Args:
        bounds: The first step, and the step after the last; ``None`` for the whole run.
        dots: Of how many the lines in a chart are, from left to right.
        known: The steps that are known as one already: 1 when every step is.
        series: What is drawn.

    Returns:
        ``None`` where nothing has to be read.
    """
    if bounds is None or dots < 1:
        return None
    first, last = bounds
    width = 1 << max(0, math.floor(math.log2((last - first) / dots)) if last - first > dots else 0)
    margin = (last - first) // 2
    return VisibleSteps(max(0, first - margin), last + margin, width, frozenset(series)) if width < known else None


def words(window: StepWindow, steps: int) -> str:
    """Which steps a window shows of a run with so many; nothing where it shows them all."""
    bounds = window.bounds(steps)
    if bounds is None:
        return ""
    return f"the last {window.span:,} steps" if window.follows else f"steps {bounds[0]:,} to {bounds[1] - 1:,}"


def _within(steps: int, first: int, span: int) -> StepWindow:
    return StepWindow(span) if first + span >= steps else StepWindow(span, max(0, first))
