"""The widget in a running app: what it paints, and how little."""

from types import SimpleNamespace

import numpy as np
import pytest
from textual.app import App, ComposeResult
from textual.color import Color
from textual.geometry import Region
from textual.screen import ModalScreen, Screen

from accel_tui.appearance.theme import measure_colours
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.run_state.marks import MarkKind, Track
from accel_tui.widgets.chart import chart as chart_module
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.background import plot_region
from accel_tui.widgets.chart.chart import MAX_DELAY_FACTOR, Chart, render
from accel_tui.widgets.chart.chart_view import PLAIN, SMOOTHINGS, ChartOptions, ChartSeries, ChartView
from accel_tui.widgets.chart.scale import epochs
from accel_tui.widgets.chart.value_axis import max_ticks
from tui.stand_ins import until


class Stage(App[None]):
    CSS = "Chart { margin: 2 3; }"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return measure_colours(self.current_theme)

    def compose(self) -> ComposeResult:
        yield Chart("loss")

    @property
    def chart(self) -> Chart:
        return self.screen_stack[0].query_one(Chart)


def falling(count: int, start: int = 0) -> np.ndarray:
    steps = np.arange(start, start + count)
    noise = np.random.default_rng(start).standard_normal(count)
    return (2 * np.exp(-steps / 4000) * np.exp(0.2 * noise)).astype(np.float32)


def on_screen(chart: Chart) -> list[str]:
    """What the terminal shows where the chart's content is."""
    place = chart.content_region
    strips = chart.screen._compositor.render_strips()
    return [strip.crop(place.x, place.right).text for strip in strips[place.y : place.bottom]]


def wanted(chart: Chart) -> list[str]:
    chart._draw_frame()
    assert chart._view
    return [render(chart._view).text(row) for row in range(chart.size.height)]


def spy(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Region, ...]]:
    """Record what the chart asks to have repainted."""
    asked: list[tuple[Region, ...]] = []
    refresh = chart.refresh

    def recorded(*regions: Region, **options: bool) -> Chart:
        asked.append(regions)
        return refresh(*regions, **options)

    monkeypatch.setattr(chart, "refresh", recorded)
    return asked


async def test_an_empty_chart_waits_and_a_first_step_is_painted() -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        assert any("waiting for the first step" in line for line in on_screen(app.chart))
        app.chart.series = (ChartSeries("training", RecordedCurve().extend(falling(1))),)
        await pilot.pause()
        assert on_screen(app.chart) == wanted(app.chart)
        assert on_screen(app.chart)[0].startswith("loss ── ")


async def test_only_the_cells_that_changed_are_repainted(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Stage()
    async with app.run_test(size=(120, 40)) as pilot:
        chart = app.chart
        chart.draw_seconds = 0
        curve = RecordedCurve().extend(falling(5100))
        chart.series = (ChartSeries("training", curve),)
        await pilot.pause()
        asked = spy(chart, monkeypatch)
        for start in range(5100, 7000, 100):
            curve = curve.extend(falling(100, start))
            chart.series = (ChartSeries("training", curve),)
            await pilot.pause()
            assert on_screen(chart) == wanted(chart)
        assert len(asked) == 19
        assert all(asked)
        cells = [sum(region.area for region in regions) for regions in asked]
        assert np.median(cells) < 40 < chart.size.area / 50
        assert all(region in chart.size.region for regions in asked for region in regions)


@pytest.mark.parametrize("columns", [50, 80])
async def test_a_curve_that_goes_on_is_drawn_later_and_its_latest_value_said_at_once_or_with_it(columns: int) -> None:
    app = Stage()
    async with app.run_test(size=(columns, 24)) as pilot:
        chart = app.chart
        curve = RecordedCurve().extend(falling(300))
        chart.series = (ChartSeries("training", curve),)
        await pilot.pause()
        before = on_screen(chart)
        chart.draw_seconds = 1e6
        curve = curve.extend(np.array([0.5, 9.25], np.float32))
        chart.series = (ChartSeries("training", curve),)
        await pilot.pause()
        assert ("9.250" in on_screen(chart)[0]) is (columns < 56), "where it stands at the end of the curve, too, later"
        assert on_screen(chart)[1:] == before[1:]

        chart.series = (ChartSeries("training", curve.truncate(100)),)  # it went back
        await pilot.pause()
        assert on_screen(chart) == wanted(chart)


async def test_a_curve_that_goes_on_is_drawn_in_the_end_though_nothing_more_comes() -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        chart = app.chart
        chart.draw_seconds = 0.05
        curve = RecordedCurve().extend(falling(3000))
        chart.series = (ChartSeries("training", curve),)
        await pilot.pause()
        for count in (1, 2, 3):
            chart.series = (ChartSeries("training", curve.extend(np.full(count, 9, np.float32))),)
        await until(pilot, lambda: chart._drawing.view.series == chart.series, "the last of them")
        assert on_screen(chart) == wanted(chart)


async def test_a_curve_is_drawn_when_its_end_comes_to_another_cell_and_until_then_not_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        chart = app.chart
        now = 1e6
        monkeypatch.setattr(chart_module, "time", SimpleNamespace(monotonic=lambda: now))
        drawn: list[ChartView] = []
        draw = chart_module.draw
        monkeypatch.setattr(chart_module, "draw", lambda view: drawn.append(view) or draw(view))
        chart.draw_seconds = 1000.0  # of a clock that stands still meanwhile
        a_cell = 10_000 // plot_region(ChartView(*chart.size, Axis(0, 10_000), Axis(0, 3))).width
        for count, seconds, draws in (
            (5000, 0.0, 1),
            (5000 + a_cell, 0.9, 0),  # too soon
            (5000 + a_cell + 1, 1.1, 1),
            (5000 + a_cell + 2, 2.2, 0),  # in the same cell
            (5000 + a_cell + 3, 1.1 + MAX_DELAY_FACTOR, 1),  # for the longest time
            (9999, 9.0, 1),
            (10_001, 10.1, 1),  # beyond the axis as it was
        ):
            now = 1e6 + 1000 * seconds
            drawn.clear()
            chart.series = (ChartSeries("training", RecordedCurve().extend(falling(count))),)
            await pilot.pause()
            assert len(drawn) == draws, count
        assert on_screen(chart) == wanted(chart)


async def test_the_same_picture_is_not_repainted(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Stage()
    async with app.run_test() as pilot:
        curve = RecordedCurve().extend(falling(300))
        app.chart.series = (ChartSeries("training", curve),)
        await pilot.pause()
        asked = spy(app.chart, monkeypatch)
        app.chart.series = (ChartSeries("another name", curve),)
        app.chart.empty = "nothing yet"
        assert asked == []


async def test_every_setting_shows() -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        chart = app.chart
        chart.series = (ChartSeries("training", RecordedCurve().extend(falling(90))),)
        chart.title = "error"
        chart.y_bounds = (0, 50)
        chart.end = 94
        chart.format = "{:.1f} %".format
        await pilot.pause()
        shown = on_screen(chart)
        assert shown == wanted(chart)
        assert shown[0].startswith("error ── ")
        assert shown[0].rstrip().endswith("%")
        assert shown[2].split("┤")[0].strip() == "50"
        assert shown[-1].split()[-1] == "80"


class Cover(Screen[None]):
    pass


class Veil(ModalScreen[None]):
    CSS = "Veil { align: right bottom; background: transparent; }"


async def test_a_hidden_chart_draws_nothing_and_is_up_to_date_when_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        chart = app.chart
        chart.draw_seconds = 0
        drawn: list[object] = []
        draw = chart_module.draw
        monkeypatch.setattr(chart_module, "draw", lambda view: drawn.append(view) or draw(view))

        async def feed(count: int) -> None:
            for steps in range(count, count + 30, 10):
                chart.series = (ChartSeries("training", RecordedCurve().extend(falling(steps))),)
                await pilot.pause()

        chart.display = False
        await pilot.pause()
        await feed(100)
        assert drawn == []
        chart.display = True
        await pilot.pause()
        assert on_screen(chart) == wanted(chart)

        await app.push_screen(Cover())
        drawn.clear()
        await feed(200)
        assert drawn == []
        await app.pop_screen()
        await pilot.pause()
        assert on_screen(chart) == wanted(chart)

        await app.push_screen(Veil())
        drawn.clear()
        await feed(300)
        assert drawn  # it can be seen behind the dialog, so it goes on
        await app.pop_screen()


async def test_a_resized_chart_is_drawn_anew() -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        app.chart.series = (ChartSeries("training", RecordedCurve().extend(falling(400))),)
        for size in ((100, 30), (40, 30), (40, 12), (12, 7), (9, 5), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert on_screen(app.chart) == wanted(app.chart)


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark", "ansi-light"])
async def test_colours_are_the_themes(theme: str) -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        chart = app.chart
        chart.series = (ChartSeries("training", RecordedCurve().extend(falling(3)), style="error"),)
        await pilot.pause()
        app.theme = theme
        await pilot.pause()
        mark = next(segment for segment in chart.render_lines(Region(0, 0, 80, 1))[0] if "──" in segment.text)
        assert mark.style is not None
        assert mark.style.color == Color.parse(app.theme_variables["error"]).rich_color


async def test_another_lens_is_seen_at_once() -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        chart = app.chart
        chart.series = (ChartSeries("training", RecordedCurve().extend(falling(3000))),)
        await pilot.pause()
        seen = {tuple(on_screen(chart))}
        lenses = (
            ChartOptions(log=True),
            *(ChartOptions(smoothing=weight) for weight in SMOOTHINGS[1:]),
            ChartOptions(log=True, smoothing=0.6),
        )
        for options in lenses:
            chart.options = options
            await pilot.pause()
            assert on_screen(chart) == wanted(chart)
            seen.add(tuple(on_screen(chart)))
        assert len(seen) == 1 + len(lenses)
        chart.options = PLAIN
        await pilot.pause()
        assert tuple(on_screen(chart)) in seen


async def test_marks_and_another_scale_are_drawn_with_the_next_picture() -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        chart = app.chart
        chart.series = (ChartSeries("training", RecordedCurve().extend(falling(300))),)
        await pilot.pause()
        before = on_screen(chart)
        chart.draw_seconds = 0.05
        chart.marks = {MarkKind.EPOCH: Track((50, 100), 1, 2)}
        chart.scale = epochs([(50, 1)], 50)
        assert on_screen(chart) == before
        await until(pilot, lambda: on_screen(chart) != before, "the next picture")
        assert on_screen(chart) == wanted(chart)
        assert on_screen(chart)[-2].count("┴") + on_screen(chart)[-2].count("┼") == 2
        assert on_screen(chart)[-1].startswith("epoch ")


async def test_an_axis_of_another_number_of_rows_is_not_kept() -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        app.chart.series = (ChartSeries("training", points=((0, 1.9), (1, 3.1))),)
        await pilot.pause()
        app.chart.has_step_labels = False
        await pilot.pause()
        view = app.chart._view
        assert view
        assert len(view.y.ticks_on_rows(view.axis_rows, max_ticks(view.axis_rows))) > 2, "round numbers, not its ends"
