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
            tooltip="Logarithmic or linear value axis; a logarithmic one hides values at or below 0",
        ),
        Binding(
            "m",
            "smooth",
            "Smooth",
            show=False,
            id="charts.smooth",
            tooltip="Smooth curves (exponential moving average): 0.6, 0.9, 0.98, off",
        ),
        Binding(
            "o",
            "clip",
            "Outliers",
            show=False,
            id="charts.clip",
            tooltip="Ignore outliers in the chart's scale, or show all values",
        ),
        Binding(
            "x",
            "x",
            "Step, epoch or time",
            show=False,
            id="charts.x",
            tooltip="Label the x-axis by step, by epoch or by time",
        ),
    ]

    options: reactive[ChartOptions] = reactive(PLAIN, repaint=False, init=False)
    """How the curves are looked at."""

    @property
    def option_items(self) -> tuple[Item, ...]:
        """What is said of it, first what is not as usual."""
        options = self.options
        items = [
            Item("log", "log", "y", on=options.log, spare=not options.log),
            Item(
                f"smoothed {options.smoothing:g}" if options.smoothing else "smooth",
                "smooth",
                "m",
                on=options.smoothing > 0,
                spare=not options.smoothing,
            ),
            Item("clipped" if options.clip else "clip", "clip", "o", on=options.clip, spare=not options.clip),
            Item(f"by {options.x}", "x", "x", on=options.x != PLAIN.x, spare=True),  # the axis says it too
        ]
        return tuple(sorted(items, key=lambda item: not item.on))

    def action_log(self) -> None:
        """Change to a logarithmic axis, or back."""
        self.options = replace(self.options, log=not self.options.log)

    def action_smooth(self) -> None:
        """Smooth more, or in the end not at all."""
        self.options = replace(self.options, smoothing=_after(SMOOTHINGS, self.options.smoothing))

    def action_clip(self) -> None:
        """Leave out outliers, or show them."""
        self.options = replace(self.options, clip=not self.options.clip)

    def action_x(self) -> None:
        """Label by the next of step, epoch and time."""
        self.options = replace(self.options, x=_after(get_args(X), self.options.x))


def _after(values: Sequence[T], value: T) -> T:
    return values[(values.index(value) + 1) % len(values)]
