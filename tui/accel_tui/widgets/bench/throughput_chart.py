"""The throughput of all candidates by batch size, a curve for each setup."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import ClassVar

import numpy as np

from accel_engine.inference.candidate import Candidate
from accel_tui.formatting import numbers
from accel_tui.run_state.curve import Curve
from accel_tui.widgets.chart.chart_view import Series
from accel_tui.widgets.chart_panels.batch_axis import BatchAxis
from accel_tui.widgets.chart_panels.compare_charts import letter, style_of
from accel_tui.widgets.chart_panels.lettered_chart import LetteredChart

MAX_CURVES = 8
"""Curves that have a letter of their own; further setups are only in the tables."""


class ThroughputChart(LetteredChart):
    """Examples per second, or requests in the scenario server, by batch size."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set()

    def on_mount(self) -> None:
        """Format the values as in the tables."""
        super().on_mount()
        self.format = numbers.compact
        self.empty = "waiting for the first batch size"

    def show(self, candidates: Sequence[Candidate]) -> None:
        """Draw what has been measured."""
        unit = "requests/s" if any(each.scenario == "server" for each in candidates) else "examples/s"
        self.title = f"{unit} by batch size"
        setups = [[each for each in group if not each.problem] for _, group in groupby(candidates, attrgetter("title"))]
        setups = setups[:MAX_CURVES]
        axis = BatchAxis.by(tuple(_curve([each.batch_size for each in setup]) for setup in setups))
        self.scale, self.end, self.window = axis.scale, axis.ticks, axis.bounds
        series = (
            Series(letter(at), _curve([each.throughput for each in setup]), style=style_of(at))
            for at, setup in enumerate(setups)
        )
        self.series = tuple(axis.place_on_axis(at, each) for at, each in enumerate(series))


def _curve(values: Sequence[float]) -> Curve:
    """A curve with a value for each row."""
    return Curve().extend(np.array(values, np.float64))
