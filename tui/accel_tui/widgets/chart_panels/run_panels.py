"""The available charts of a run, and their series."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args

from accel_engine.plan.monitor import is_at_most_one
from accel_engine.run import RunInfo
from accel_engine.run.history.history import Points
from accel_engine.run.store.series_names import (
    LEARNING_RATE,
    MEAN_PREFIXES,
    VALIDATION_PREFIX,
    elements,
    is_loss,
)
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.words import numbers
from accel_tui.formatting.bench_figures import bench_figure
from accel_tui.run_state.device_curves import READINGS
from accel_tui.run_state.marks import MarkKind, Track
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart import scale
from accel_tui.widgets.chart.axes import significant
from accel_tui.widgets.chart.chart_view import NOTHING, ChartSeries, Colour, ThemeColour, X
from accel_tui.widgets.chart.scale import XScale

_TITLES = {
    THROUGHPUT: "steps/s",
    LEARNING_RATE: "learning rate",
    "utilization": "utilization %",
    "memory_used": "memory GiB",
    "temperature": "temperature °C",
    "power": "power W",
}


@dataclass(frozen=True, slots=True)
class Panel:
    """An available chart."""

    id: str
    """The widget's id, which may be a place that another series takes later."""
    name: str
    """The series, or the device metric."""
    of_devices: bool = False
    """Whether it is a device metric."""
    of_bench: str = ""
    """The title of a figure of a bench; empty for others."""

    @property
    def key(self) -> str:
        """What it shows, wherever it is; series have any name, so that device metrics have a word before theirs."""
        return f"device {self.name}" if self.of_devices else self.name

    @property
    def title(self) -> str:
        """The chart's title."""
        if self.of_bench:
            return self.of_bench
        known = self.of_devices or self.name in (THROUGHPUT, LEARNING_RATE)
        return _TITLES[self.name] if known else self.name.replace("_", " ")

    @property
    def is_exact(self) -> bool:
        """Whether its values are exact, and neither smoothed nor clipped."""
        return self.name == LEARNING_RATE

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Values that the value axis always includes."""
        if not self.of_devices:
            return None, None
        return (0.0, 100.0) if self.name == "utilization" else (0.0, None)

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The lowest and the highest value that there can be, if known."""
        if self.of_devices:
            return self.bounds
        return limits_of(self.name) if not self.of_bench else (None, None)


def panel_format(panel: Panel, info: RunInfo | None) -> Callable[[float], str]:
    """The format of the latest values of a chart."""
    if panel.of_devices or panel.name == THROUGHPUT:
        return numbers.compact
    if panel.of_bench:
        return bench_figure(panel.name, info).chart_text
    return numbers.learning_rate if panel.name == LEARNING_RATE else significant


def limits_of(series: str) -> tuple[float | None, float | None]:
    """The lowest and the highest value that a series can have, if known."""
    return (0.0, 1.0) if is_at_most_one(series) else (None, None)


def readings_of(state: RunState) -> frozenset[str]:
    """The device metrics that some device has now."""
    return frozenset(
        name for name in READINGS if any(meter.reading(name).value is not None for meter in state.meters.values())
    )


def panels_of(state: RunState, readings: frozenset[str]) -> tuple[Panel, ...]:
    """All available charts of a run, the most important first.

    Args:
        state: The run's state.
        readings: The device metrics that were ever available.
    """
    if state.info and state.info.bench:
        return _bench_panels(state, state.info)
    names = _by_group([name for name in series_names(state) if name != LEARNING_RATE] or ["loss"], state.monitor)
    # The first two have fixed ids: their names are known only once the model is built.
    first = [Panel(id_, name) for id_, name in zip(("loss", "second"), names, strict=False)]
    measured = {f"{mean}{name}": name for name in state.validation for mean in ("", *MEAN_PREFIXES)}
    charted = {measured[name] for name in names if name in measured}
    others = [
        *names[2:],
        *(name for name in state.validation if name not in charted),
    ]  # some metrics only have validation points
    series = [Panel("series-" + re.sub(r"\W", "-", name), name) for name in others if name != LEARNING_RATE]
    parts = {name for each in elements([panel.name for panel in series]).values() for name in each}
    single, of_many = ([one for one in series if (one.name in parts) is of_many] for of_many in (False, True))
    rate = [Panel("learning-rate", LEARNING_RATE)] if state.has_learning_rate else []
    read = [Panel(f"device-{name.replace('_', '-')}", name, of_devices=True) for name in READINGS if name in readings]
    return (*first, Panel("throughput", THROUGHPUT), *single, *read[:1], *rate, *read[1:], *of_many)


def _bench_panels(state: RunState, info: RunInfo) -> tuple[Panel, ...]:
    """A chart for each figure of a bench; the first two have the same ids as in a training run."""
    names = [name for name in state.curves if name != info.x_series] or ["throughput"]
    ids = ["loss", "second", *(f"figure-{name.replace('_', '-')}" for name in names[2:])]
    return tuple(
        Panel(id_, name, of_bench=bench_figure(name, info).chart_title) for id_, name in zip(ids, names, strict=False)
    )


def _by_group(names: Sequence[str], monitor: str) -> list[str]:
    """Names in the order of the charts: the loss, the metric that counts, other losses, metrics, gradients.

    Where the loss itself counts, the first metric comes next to it.
    """
    losses = [name for name in names if is_loss(name)]
    gradients = [name for name in names if name.startswith("gradient")]
    metrics = [name for name in names if name not in losses and name not in gradients]
    counts = [name for name in names if name == monitor.removeprefix(VALIDATION_PREFIX)]
    return list(
        dict.fromkeys(
            [
                *losses[:1],
                *[*(name for name in counts if name not in losses[:1]), *metrics][:1],
                *losses,
                *metrics,
                *gradients,
            ]
        )
    )


def series_names(state: RunState) -> tuple[str, ...]:
    """Names of the per-step series, expected or recorded."""
    return tuple(dict.fromkeys([*(state.built.series if state.built else ()), *state.curves]))


def panel_series(state: RunState, panel: Panel) -> tuple[ChartSeries, ...]:
    """The series of a chart."""
    if panel.of_devices:
        curves = state.device_curves.get(panel.name, {})
        devices = sorted(curves, key=_order)
        return tuple(ChartSeries(device, curves[device], style=_colour(index)) for index, device in enumerate(devices))
    curve, detail = state.curves.get(panel.name, NOTHING), state.visible_series.get(panel.name, NOTHING)
    if panel.name == LEARNING_RATE:
        return (ChartSeries("learning rate", curve, style="rate", detail=detail),)
    if panel.name == THROUGHPUT:
        name = "mean" if state.has_ended else "recent"
        return (ChartSeries(name, state.throughput, style="speed", detail=detail, value=state.steps_per_second),)
    colour = measure_colour(panel.name)
    training = ChartSeries("step", curve, style=colour, detail=detail)
    points = points_of(state.validation_of(panel.name))
    if not points:
        return (training if panel.of_bench else _with_value(training),)
    validation = ChartSeries("validation", points=points, style=validation_colour(colour))
    return (training, validation) if panel.name in state.curves else (_with_value(validation),)


def _with_value(series: ChartSeries) -> ChartSeries:
    """The only series of a chart, with its last value, so that its name shows that it is not a mean of an epoch."""
    value = series.curve.last_value if series.curve.end_step else series.points[-1][1] if series.points else math.nan
    return series if math.isnan(value) else replace(series, value=value)


@lru_cache(maxsize=16)
def points_of(validation: Points) -> Points:
    """Positions of validations, cached: there may be thousands, drawn five times a second.

    A validation after N steps evaluates the weights of step N - 1, counted from 0.
    """
    return tuple((step - 1, value) for step, value in validation)


def scale_of(state: RunState, x: X) -> XScale | None:
    """The x-axis if not steps."""
    if x == "time":
        return scale.seconds(state.step_end_times)
    if x == "epoch":
        track = state.marks.get(MarkKind.EPOCH, Track())
        before = state.epoch.epoch - track.count if state.epoch else 0  # a script may have continued counting
        ended = [(step, before + index * track.stride) for index, step in enumerate(track.steps, start=1)]
        return scale.epochs(ended, state.steps_per_epoch, before)
    return None


def _order(device: str) -> tuple[bool, str, int]:
    """Accelerators first, then by number."""
    kind, _, number = device.partition(":")
    return kind == "cpu", kind, int(number) if number.isdecimal() else 0


def measure_colour(series: str) -> Colour:
    """The colour of a series of a training or a validation by what it measures."""
    if series in (THROUGHPUT, LEARNING_RATE):
        return "speed" if series == THROUGHPUT else "rate"
    return "gradient" if series.startswith("gradient") else "loss" if is_loss(series) else "metric"


def validation_colour(training: Colour) -> Colour:
    """The colour of the validation of a series."""
    return "metric-light" if training == "metric" else "loss-light"


def _colour(index: int) -> Colour:
    colours: tuple[Colour, ...] = get_args(ThemeColour)
    return colours[index % len(colours)]
