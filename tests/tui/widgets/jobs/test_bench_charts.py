"""The histogram of latencies: drawn once per state, on an axis that grows with the candidate's requests."""

from dataclasses import replace
from typing import Any

import pytest
from textual.app import App, ComposeResult

from accel_engine.inference.measurement.percentiles import LiveWindow
from accel_tui.appearance.theme import measure_colours
from accel_tui.screens.bench_screen import LatencyHistogram
from accel_tui.widgets.chart import plot as plots
from accel_tui.widgets.chart.plot import draw_plot

WIDE = LiveWindow("k3fp on cpu:0", 1, 950.0, 144, (90, *[0] * 39, 1), 0.0003, 0.0078)
NARROW = replace(WIDE, counts=(90, 1), p99=0.0003)


class HistogramApp(App[None]):
    def get_theme_variable_defaults(self) -> dict[str, str]:
        return measure_colours(self.current_theme)

    def compose(self) -> ComposeResult:
        yield LatencyHistogram()


async def test_it_is_drawn_once_for_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def draw(plot: Any, *size: int) -> Any:
        drawn.append(size)
        return draw_plot(plot, *size)

    monkeypatch.setattr(plots, "draw_plot", draw)
    async with HistogramApp().run_test(size=(60, 12)) as pilot:
        histogram = pilot.app.query_one(LatencyHistogram)
        histogram.live = WIDE
        lines = [histogram.render_line(y).text for y in range(12)]
        assert "latency ms" in lines[0]
        assert drawn == [(60, 12)]
        histogram.live = replace(WIDE, throughput=1.0)
        assert [histogram.render_line(y).text for y in range(12)] == lines
        assert len(drawn) == 2


async def test_the_axis_grows_until_the_next_candidate() -> None:
    async with HistogramApp().run_test(size=(60, 12)) as pilot:
        histogram = pilot.app.query_one(LatencyHistogram)
        histogram.live = NARROW
        narrow = histogram.plot(NARROW).x
        histogram.live = WIDE
        wide = histogram.plot(WIDE).x
        assert wide != narrow
        histogram.live = NARROW
        assert histogram.plot(NARROW).x == wide
        histogram.live = replace(NARROW, batch_size=2)
        assert histogram.plot(NARROW).x == narrow
