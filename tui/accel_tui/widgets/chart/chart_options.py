"""How curves are looked at: one frozen value, the same for all charts of a screen."""

from dataclasses import dataclass, replace
from typing import Literal

X = Literal["step", "epoch", "time"]
"""What the labels below a chart count. Curves are spaced by step whichever it is."""

SMOOTHINGS = (0.0, 0.6, 0.9, 0.98)
"""The weights of what was before that a key goes through."""


@dataclass(frozen=True, slots=True)
class ChartOptions:
    """How curves are looked at. ``Lens()`` shows them as they are.

    Attributes:
        log: Whether equal ratios of values, not equal differences, are equally far apart.
        smoothing: The weight of all that was before in an exponential moving average; 0 for none.
        clip: Whether the value axis leaves out the few values that are far from all others.
        x: What the labels below count.
    """

    log: bool = False
    smoothing: float = 0.0
    clip: bool = False
    x: X = "step"

    @property
    def exact(self) -> "ChartOptions":
        """The same for values that are set and not measured: none of them is noise, and none is too far away."""
        return replace(self, smoothing=0.0, clip=False)

    @property
    def words(self) -> str:
        """What it does to values, in a few words; nothing where it leaves them as they are."""
        smoothed = f"smoothed {self.smoothing:g}" if self.smoothing else ""
        return ", ".join(filter(None, ("log" if self.log else "", smoothed, "clipped" if self.clip else "")))


PLAIN = ChartOptions()
"""Curves as they are."""
