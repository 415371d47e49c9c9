"""A stored bench is shown by batch size, and is offered nothing that needs steps, an engine or a model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine.errors import UsageError
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.measurement.percentiles import Percentile
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.run import runs_directory
from accel_engine.run.runs.listing import find_run, summarize
from accel_engine.trained.bench_runs import BenchRuns
from accel_tui.app_protocol import Screens
from accel_tui.cli.event_text import format_event
from accel_tui.run_list.columns import COLUMNS
from accel_tui.run_list.comparison import ComparedRun, compare_runs, compared_series_names, find_mixed_kinds
from accel_tui.run_list.host_rows import host_run_columns
from accel_tui.run_list.run_filter import matches, parse_filter
from accel_tui.screens.compare_screen import CompareScreen
from accel_tui.screens.run_screen import RunScreen
from accel_tui.screens.runs_screen import RunsScreen
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart_panels.compare_charts import CompareCharts
from accel_tui.widgets.chart_panels.run_charts import RunCharts
from accel_tui.widgets.run.phase_line import phase, phase_progress
from accel_tui.widgets.run.run_details import RunDetails
from accel_tui.widgets.run.run_lines import ProgressLine, RunTitle
from accel_tui.widgets.run.run_outcome import RunOutcome
from accel_tui.widgets.runs_table import SelectedRun
from accel_tui.widgets.styled_text import plain_spans
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, begun, followed, shows, text_of, until


def candidate(batch_size: int, milliseconds: float, throughput: float, **changes: Any) -> Candidate:
    shares = {"p50": 0.5, "p99": 1.0}
    found = {name: Percentile(milliseconds * share / 1000, 1e-4, 1.0) for name, share in shares.items()}
    described = {"model": "k3fp", "format": "keras", "device": "cpu:0", "xla": False, "precision": "float32"}
    measured = {"scenario": "multi-stream", "percentiles": found, "throughput": throughput, "stable": True}
    return Candidate(**{**described, **measured, "batch_size": batch_size, "memory": 3 << 20, **changes})


def save(*candidates: Candidate, **options: Any) -> Path:
    runs = BenchRuns(BenchOptions(**options))
    for each in candidates:
        runs.add(each)
    return runs_directory() / runs.save()[0]


@pytest.fixture
def directory() -> Path:
    return save(
        candidate(4, 0.25, 1000.0), candidate(16, 2.0, 4000.0), candidate(64, 12.0, 5000.0), target_latency=0.01
    )


@pytest.fixture
def compiled() -> Path:
    return save(candidate(1, 0.125, 500.0, xla=True), candidate(64, 6.0, 9000.0, xla=True))


def compared(directory: Path) -> ComparedRun:
    return ComparedRun(summarize(directory), followed(directory))


def test_the_list_tells_that_it_was_measured(directory: Path) -> None:
    run = summarize(directory)
    shown = {column.title: column.text(run, 0.0) for column in COLUMNS}
    assert shown["status"] == "✓ measured"
    assert (shown["steps"], shown["best"], shown["monitor"]) == ("—", "4.00k", "examples/s")
    on_hosts = {column.title: column.text(run, 0.0) for column in host_run_columns([run], {})}
    assert on_hosts["metric"] == "examples/s"
    assert matches(run, parse_filter("kind:bench")) is True
    assert matches(run, parse_filter("kind:training")) is False
    detail = SelectedRun()
    detail.show_run(run)
    assert "measured by accel-tui bench, multi-stream" in str(detail.content)


def test_the_run_screen_has_no_steps(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunTitle, "width", 120)
    state = followed(directory)
    assert RunOutcome().build(state).plain.splitlines()[1] == (
        "The highest throughput within 10.0 ms at p99: batch 16, 4.00k examples/s, p50 1.00 ms, p99 2.00 ms, "
        "memory 3.0 MiB"
    )
    assert RunOutcome().build(state).plain.startswith("Measured 3 batch sizes in 0:0")
    assert plain_spans(phase(state, 0.0)).startswith("✓ measured")
    assert [plain_spans(pair).strip() for pair in phase_progress(state)] == ["3 batch sizes"]
    assert ProgressLine().spans(state) == []
    assert "inference, multi-stream" in RunTitle().build(state).plain
    facts = "".join(RunDetails().build(state).plain.split())
    assert "modelk3fpformatkerasdevicecpu:0precisionfloat32XLAoff" in facts
    assert state.monitor == "throughput"


def test_its_end_in_a_terminal_has_no_steps(directory: Path) -> None:
    state = followed(directory)
    assert state.ended is not None
    line = format_event(state.ended, state)
    assert "finished with 3 batch sizes" in line
    assert "step" not in line


def test_nothing_is_offered_that_needs_an_engine_or_a_model(directory: Path) -> None:
    screen = RunScreen(directory)
    screen.set_reactive(RunScreen.state, followed(directory))
    training = ("pause", "stop", "learning_rate", "detach", "checkpoint", "continue", "train_longer")
    assert not any(screen.check_action(action, ()) for action in (*training, "log", "search_log", "diagnostics"))


def test_without_a_batch_size_within_the_target_the_shortest_latency_is_shown() -> None:
    directory = save(candidate(1, 2.0, 1000.0), candidate(2, 3.0, 1500.0), target_latency=0.001)
    words = RunOutcome().build(followed(directory)).plain
    assert "No batch size is within the target latency. The shortest latency: batch 1, 1.00k examples/s" in words


def test_figures_that_are_missing_are_not_made_up(directory: Path) -> None:
    state = followed(directory)
    assert state.ended is not None
    words = RunOutcome().build(replace(state, ended=replace(state.ended, metrics={}))).plain
    assert words.endswith("at p99: unknown")


async def test_charts_are_by_batch_size_and_the_cursor_stops_at_measured_ones(directory: Path) -> None:
    app = StubApp(directory)
    async with app.run_test(size=(120, 40)) as pilot:
        await begun(pilot)
        await until(pilot, lambda: "examples/s" in text_of(pilot), "the charts")
        charts = app.screen.query_one(RunCharts)
        assert [chart.title.strip("▸ ") for chart in charts.query(Chart)][:2] == ["examples/s", "p99 ms"]
        throughput = charts.query(Chart).first()
        assert throughput.series[0].points == ((128, 1000.0), (256, 4000.0), (384, 5000.0))
        assert throughput.window == (128, 385)
        p99 = list(charts.query(Chart))[1]
        assert [value for _, value in p99.series[0].points] == pytest.approx([0.25, 2.0, 12.0])
        assert p99.format(2.0) == "2.00 ms"
        assert " step" not in text_of(pilot)
        await pilot.press("v")
        await shows(pilot, "batch size 16", "4.00k")
        await pilot.press("right")
        await shows(pilot, "batch size 64")
        await pilot.press("right")
        await shows(pilot, "batch size 64")
        await pilot.press("shift+left")
        await shows(pilot, "batch size 4")
        assert charts.check_action("x", ()) is False


async def test_benches_are_compared_on_one_axis(directory: Path, compiled: Path) -> None:
    app = BareApp()
    async with app.run_test(size=(160, 50)) as pilot:
        await begun(pilot)
        await app.push_screen(CompareScreen((directory, compiled)))
        await until(pilot, lambda: "p99 ms" in text_of(pilot), "the charts")
        charts = app.screen.query_one(CompareCharts)
        assert "batch_size" not in charts.names
        assert "steps/s" not in charts.names
        one, other = charts.query(Chart).first().series
        assert one.points == ((128, 1000.0), (256, 4000.0), (384, 5000.0))
        assert other.points == ((0, 500.0), (384, 9000.0))
        assert charts.stops == (0, 128, 256, 384)
        assert charts.x_name == "batch size"


def test_a_comparison_has_the_figures_of_the_best_batch_sizes(directory: Path, compiled: Path) -> None:
    runs = [compared(directory), compared(compiled)]
    found = compare_runs(runs)
    rows = {row.label: (row.texts, row.best) for row in found.results}
    assert rows["status"][0] == ("measured", "measured")
    assert rows["batch size"] == (("16", "64"), frozenset())
    assert rows["examples/s"] == (("4.00k", "9.00k"), {1})
    assert rows["p99"] == (("2.00 ms", "6.00 ms"), {0})
    assert "steps" not in rows
    assert {row.label: row.texts for row in found.plan}["XLA"] == ("off", "on")
    assert compared_series_names(runs)[:2] == ["throughput", "p99"]
    assert [each.title for each in runs] == [
        f"{directory.name[:4]} k3fp on cpu:0, float32",
        f"{compiled.name[:4]} k3fp on cpu:0 with XLA, float32",
    ]


@pytest.fixture
def trained() -> Path:
    engine = FakeEngine().begin()
    engine.end()
    engine.close()
    return engine.directory


def test_last_is_no_bench(directory: Path, trained: Path) -> None:
    again = save(candidate(1, 1.0, 1.0))
    assert find_run("last") == trained
    assert find_run(again.name[:4]) == again


def test_where_there_are_only_benches_there_is_no_last_run(directory: Path) -> None:
    with pytest.raises(UsageError, match=f"last is never a bench, and all runs are: .* such as {directory.name}"):
        find_run("last")
    (runs_directory() / "zz-damaged").mkdir()
    (runs_directory() / "zz-damaged" / "run.db").write_text("no database")
    assert find_run("last").name == "zz-damaged"


def test_a_bench_is_not_compared_with_a_training_run(directory: Path, trained: Path) -> None:
    both = [info for each in (directory, trained) if (info := summarize(each).info)]
    assert "is a bench of inference, by batch size" in find_mixed_kinds(both)
    assert find_mixed_kinds(both[:1]) == find_mixed_kinds(both[1:]) == ""


async def test_the_list_says_why_it_does_not_compare_them(directory: Path, trained: Path) -> None:
    app = BareApp()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await begun(pilot)
        app.open_screen(Screens.RUNS)
        await until(pilot, lambda: "benches" in text_of(pilot), "the list")
        assert isinstance(app.screen, RunsScreen)
        await pilot.press("space", "space", "c")
        await until(pilot, lambda: "is a bench of inference" in text_of(pilot), "why")
        assert isinstance(app.screen, RunsScreen)
