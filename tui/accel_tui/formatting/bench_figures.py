"""The figures that a stored bench has for each batch size: titles, units and formats."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from accel_engine.run import RunInfo
from accel_engine.run.store.series_names import BATCH_SIZE
from accel_engine.words import numbers
from accel_engine.words.numbers import percent

_MIB = float(1 << 20)


@dataclass(frozen=True, slots=True)
class Figure:
    """How a figure is shown."""

    title: str
    """Its name."""
    text: Callable[[float], str]
    """Formats a value."""
    unit: str = ""
    """Name of the unit of a chart; empty for none."""
    size: float = 1.0
    """The divisor of the values that a chart shows."""

    @property
    def chart_title(self) -> str:
        """The title of a chart, with its unit."""
        return f"{self.title} {self.unit}".rstrip()

    def chart_text(self, value: float) -> str:
        """A value of a chart, with its own unit."""
        return self.text(value * self.size)


def _latency(title: str) -> Figure:
    return Figure(title, numbers.latency, "ms", 1e-3)


def _whole(value: float) -> str:
    return f"{round(value):,}" if math.isfinite(value) else "—"


def _energy(value: float) -> str:
    return f"{value:.3g} J"


_FIGURES: Mapping[str, Figure] = {
    BATCH_SIZE: Figure("batch size", _whole),
    "throughput": Figure("examples/s", numbers.compact),
    "p50": _latency("p50"),
    "p90": _latency("p90"),
    "p99": _latency("p99"),
    "p99_low": _latency("p99 low"),
    "p99_high": _latency("p99 high"),
    "p999": _latency("p99.9"),
    "first_seconds": _latency("first call"),
    "load_seconds": _latency("load"),
    "size": Figure("size", numbers.size),
    "memory": Figure("memory", numbers.size, "MiB", _MIB),
    "energy": Figure("energy per example", _energy, "J"),
    "disagreement": Figure("windows differ by", percent),
}

_MAIN = ("p50", "p90", "p99", "p999", "memory", "energy")

_REQUESTS = Figure("requests/s", numbers.compact)


def bench_figure(name: str, info: RunInfo | None = None) -> Figure:
    """A figure by the name of its series.

    Args:
        name: The series.
        info: The run, whose scenario decides what the throughput counts.
    """
    if name == "throughput" and info and info.bench == "server":
        return _REQUESTS
    return _FIGURES.get(name) or Figure(name.replace("_", " "), numbers.metric)


def described(metrics: Mapping[str, float], info: RunInfo) -> str:
    """The main figures of a batch size: ``batch 16, 4.00k examples/s, p50 1.00 ms``; without those that are missing.

    Args:
        metrics: The figures by the name of their series.
        info: The run.
    """
    rate = bench_figure("throughput", info)
    parts = []
    if BATCH_SIZE in metrics:
        parts.append(f"batch {_FIGURES[BATCH_SIZE].text(metrics[BATCH_SIZE])}")
    if "throughput" in metrics:
        parts.append(f"{rate.text(metrics['throughput'])} {rate.title}")
    others = [(bench_figure(name), metrics[name]) for name in _MAIN if name in metrics]
    return ", ".join([*parts, *(f"{each.title} {each.text(value)}" for each, value in others)]) or "unknown"
