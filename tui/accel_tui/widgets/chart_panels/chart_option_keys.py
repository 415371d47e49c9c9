"""Keys of the chart options: logarithmic axis, smoothing, clipping, x-axis."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar, get_args

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import reactive

from accel_tui.widgets.chart.chart_view import PLAIN, SMOOTHINGS, ChartOptions, X
from accel_tui.widgets.chart_panels.chart_grid import BarItem

T = TypeVar("T")

_SCALES = {None: "auto log", True: "log", False: "linear"}


class ChartOptionKeys(Vertical):
    """Charts with shared chart options."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "y",
            "log",
            "Log axis",
            show=False,
            id="charts.log",
            tooltip="A logarithmic value axis where the range asks for it, always, or never; it hides values up to 0",
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
            "Show outliers",
            show=False,
            id="charts.clip",
            tooltip="Fit all values, or hide outliers, which are marked and counted",
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
    """How curves are drawn."""

    x_name: str = ""
    """Name of the x-axis where there is only one."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer other labels of the x-axis only where there are some."""
        return action != "x" or not self.x_name

    @property
    def option_items(self) -> tuple[BarItem, ...]:
        """Items of the options, those that are on first."""
        options = self.options
        items = [
            BarItem(
                _SCALES[options.log], "log", "y", is_active=options.log is not None, drop_first=options.log is None
            ),
            BarItem(
                f"smoothed {options.smoothing:g}" if options.smoothing else "smooth",
                "smooth",
                "m",
                is_active=options.smoothing > 0,
                drop_first=not options.smoothing,
            ),
            BarItem(
                "outliers hidden" if options.clip else "all values",
                "clip",
                "o",
                is_active=not options.clip,
                drop_first=options.clip,
            ),
            *self._x_items,
        ]
        return tuple(sorted(items, key=lambda item: not item.is_active))

    @property
    def _x_items(self) -> list[BarItem]:
        """The key of the axis: by step, time and so on, which the axis shows, too."""
        if self.x_name:
            return [BarItem(f"by {self.x_name}", drop_first=True)]
        x = self.options.x
        return [BarItem(f"by {x}", "x", "x", is_active=x != PLAIN.x, drop_first=True)]

    def action_log(self) -> None:
        """Switch the value axis between chosen by the range, logarithmic and linear."""
        self.options = replace(self.options, log=_after(tuple(_SCALES), self.options.log))

    def action_smooth(self) -> None:
        """Smooth more, or not at all after the maximum."""
        self.options = replace(self.options, smoothing=_after(SMOOTHINGS, self.options.smoothing))

    def action_clip(self) -> None:
        """Show outliers, or hide them."""
        self.options = replace(self.options, clip=not self.options.clip)

    def action_x(self) -> None:
        """Switch the x-axis between step, epoch and time."""
        self.options = replace(self.options, x=_after(get_args(X), self.options.x))


def _after(values: Sequence[T], value: T) -> T:
    return values[(values.index(value) + 1) % len(values)]
