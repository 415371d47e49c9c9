"""Options of how curves are drawn, shared by all charts of a screen."""

from dataclasses import dataclass, replace
from typing import Literal

X = Literal["step", "epoch", "time"]
"""Labels of the x-axis; curves are always spaced by step."""

SMOOTHINGS = (0.0, 0.6, 0.9, 0.98)
"""Smoothing weights that a key cycles through."""


@dataclass(frozen=True, slots=True)
class ChartOptions:
    """Options of how curves are drawn. ``ChartOptions()`` draws them unchanged.

    Attributes:
        log: Whether the value axis is logarithmic.
        smoothing: Weight of the exponential moving average; 0 for none.
        clip: Whether the value axis ignores outliers.
        x: Labels of the x-axis.
    """

    log: bool = False
    smoothing: float = 0.0
    clip: bool = False
    x: X = "step"

    @property
    def exact(self) -> "ChartOptions":
        """The same for exact values, such as the learning rate: without smoothing and clipping."""
        return replace(self, smoothing=0.0, clip=False)

    @property
    def description(self) -> str:
        """The options in words; empty for the defaults."""
        smoothed = f"smoothed {self.smoothing:g}" if self.smoothing else ""
        return ", ".join(filter(None, ("log" if self.log else "", smoothed, "clipped" if self.clip else "")))


PLAIN = ChartOptions()
"""The default options."""
