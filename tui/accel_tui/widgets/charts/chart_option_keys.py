"""The keys that change how the curves of a screen are looked at."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar, get_args

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import reactive

from accel_tui.widgets.chart.chart_options import PLAIN, SMOOTHINGS, ChartOptions, X
from accel_tui.widgets.charts.chart_bar import Item

T = TypeVar("T")


class ChartOptionKeys(Vertical):
    """Something with charts that are all looked at in one way."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "y",
            "log",
            "Log axis",
            show=False,
            id="charts.log",
            tooltip="Values on a logarithmic axis, or evenly; what is not above 0 is left out, and counted",
        ),
        Binding(
            "m",
            "smooth",
            "Smooth",
            show=False,
            id="charts.smooth",
            tooltip="Smooth curves: a moving average that weighs what was before by 0.6, 0.9, 0.98; off",
        ),
        Binding(
            "o",
            "clip",
            "Outliers",
            show=False,
            id="charts.clip",
            tooltip="Leave out the few values far from all others, and say how many, or show all",
        ),
        Binding(
            "x",
            "x",
            "Step, epoch or time",
            show=False,
            id="charts.x",
            tooltip="Curves by step, by epoch, by time since the first step; of one run, steps stay evenly apart",
        ),
    ]

    lens: reactive[ChartOptions] = reactive(PLAIN, repaint=False, init=False)
    """How the curves are looked at."""

    @property
    def lens_items(self) -> tuple[Item, ...]:
        """What is said of it, first what is not as usual."""
        lens = self.lens
        items = [
            Item("log", "log", "y", on=lens.log, spare=not lens.log),
            Item(
                f"smoothed {lens.smoothing:g}" if lens.smoothing else "smooth",
                "smooth",
                "m",
                on=lens.smoothing > 0,
                spare=not lens.smoothing,
            ),
            Item("clipped" if lens.clip else "clip", "clip", "o", on=lens.clip, spare=not lens.clip),
            Item(f"by {lens.x}", "x", "x", on=lens.x != PLAIN.x, spare=True),  # the axis says it too
        ]
        return tuple(sorted(items, key=lambda item: not item.on))

    def action_log(self) -> None:
        """Change to a logarithmic axis, or back."""
        self.lens = replace(self.lens, log=not self.lens.log)

    def action_smooth(self) -> None:
        """Smooth more, or in the end not at all."""
        self.lens = replace(self.lens, smoothing=_after(SMOOTHINGS, self.lens.smoothing))

    def action_clip(self) -> None:
        """Leave out outliers, or show them."""
        self.lens = replace(self.lens, clip=not self.lens.clip)

    def action_x(self) -> None:
        """Label by the next of step, epoch and time."""
        self.lens = replace(self.lens, x=_after(get_args(X), self.lens.x))


def _after(values: Sequence[T], value: T) -> T:
    return values[(values.index(value) + 1) % len(values)]
