from pathlib import Path

import numpy as np
import pytest

from accel_engine.events import EpochEnded, Validated
from accel_engine.plan import Plan
from accel_engine.run import RunInfo, RunSummary, Status
from accel_tui.widgets.chart.bands import QUANTILES, band
from accel_tui.widgets.chart.plot import Plot, PlotSeries, draw_plot
from accel_tui.widgets.chart_panels.run_band import RunCurve, band_plot, best_curve, read_curve
from tui.fake_engine import FakeEngine

METRIC = "validation_accuracy"


def curve(name: str, *values: float, best: float | None = None, status: Status = Status.FINISHED) -> RunCurve:
    info = RunInfo(name, Path(name), None, {}, 0.0, "h", 1, status)
    run = RunSummary(name, Path(name), info, monitor=METRIC, best=max(values) if best is None else best)
    return RunCurve(run, np.arange(1.0, len(values) + 1), np.array(values))


CURVES = [curve(f"r{number}", number / 100, number / 100) for number in range(101)]


def test_the_band_has_the_percentiles_of_all_runs_where_enough_have_values() -> None:
    at, levels = band(CURVES)
    assert (at[0], at[-1]) == (1.0, 2.0)
    np.testing.assert_allclose(levels[:, 0], np.array(QUANTILES) / 100)
    at, _ = band([*CURVES[:3], curve("long", 0.5, 0.5, 0.5, 0.5)])
    assert at[-1] < 2.1, "one run is no band"
    assert band(CURVES[:2])[0].size == 0
    at, _ = band([*CURVES[:3], curve("far", *[0.5] * 10_000)])
    assert at.size > 100, "one long run leaves no gaps"


def test_runs_that_end_early_count_as_far_as_they_got() -> None:
    _, levels = band(
        [*(curve(f"s{number}", 0.0, 0.0) for number in range(3)), *(curve(f"l{n}", *[1.0] * 3) for n in range(3))]
    )
    assert levels[2, 0] == 0.5
    assert levels[2, -1] == 1.0


def test_the_best_the_selected_and_the_live_runs_are_in_colour() -> None:
    curves = [*CURVES, curve("live", 0.2, 0.3, status=Status.RUNNING)]
    by_loss = RunCurve(RunSummary("l", Path("l"), None, monitor="loss", best=1.5), np.ones(1), np.ones(1))
    found = best_curve([by_loss, *curves], METRIC)
    assert found
    assert found.run.id == "r100"
    plot = band_plot(curves, Path("r7"), 20, has_tints=True)
    assert {each.name: each.style for each in plot.series} == {
        "10-90%": "primary", "25-75%": "primary", "median": "axis", "running": "primary", "best": "success",
        "selected": "secondary",
    }  # fmt: skip
    assert plot.title == "val acc of 102 runs"
    other = RunCurve(RunSummary("x", Path("x"), None), np.empty(0), np.empty(0))
    assert band_plot([*curves, other], None, 20, has_tints=True).title == "val acc of 102 runs"
    assert band_plot([], None, 20, has_tints=True).title == "no results yet"


@pytest.mark.parametrize("has_tints", [True, False])
def test_a_band_covers_the_cells_between_its_lines(has_tints: bool) -> None:
    series = PlotSeries(np.array([0.0, 1.0]), np.array([[0.25, 0.25], [0.75, 0.75]]), "band")
    frame = draw_plot(Plot("t", (series,), has_tints=has_tints), 60, 23)
    rows = [row for row in range(1, 20) if frame.runs(row)[-1][1] not in ("grid", "axis", "label", "title")]
    names = {name for row in rows for _, name in frame.runs(row)}
    assert any("primary-area" in name if has_tints else name == "primary-band" for name in names)


def test_a_curve_is_read_by_epoch(home: Path) -> None:
    engine = FakeEngine(Plan(epochs=2))
    engine.steps_per_epoch = 10
    engine.begin().build()
    for epoch in (1, 2):
        engine.say(Validated, epoch=epoch, step=10 * epoch, metrics={"accuracy": epoch / 4}, seconds=0.1)
    engine.close()
    found = read_curve(engine.directory)
    assert (found.epochs.tolist(), found.values.tolist(), found.by_epoch) == ([1.0, 2.0], [0.25, 0.5], True)
    assert read_curve(home / "nothing").values.size == 0


def test_a_curve_stands_at_the_recorded_ends_of_its_epochs(home: Path) -> None:
    engine = FakeEngine(Plan(epochs=3))
    engine.steps_per_epoch = 10
    engine.begin().build()
    for epoch, step in ((1, 20), (2, 30)):
        engine.say(EpochEnded, epoch=epoch, step=step, metrics={"loss": 1.0 / epoch}, seconds=1.0)
    assert read_curve(engine.directory).epochs.tolist() == [1.0, 2.0]
