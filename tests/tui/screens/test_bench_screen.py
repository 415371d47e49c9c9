"""The screen that measures inference, on what a stand-in for the engine measures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest
from textual.pilot import Pilot

from accel_engine.errors import RunError
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.measurement.percentiles import LiveWindow, Percentile
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.run import list_runs
from accel_tui.app_protocol import Screens
from accel_tui.screens import bench_screen
from accel_tui.screens.bench_screen import BenchScreen, LatencyHistogram, ThroughputChart
from accel_tui.widgets.chart.axes import LogAxis
from accel_tui.widgets.plan.picker import Picker
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, hides, more, shows, text_of, until


def candidate(batch_size: int, milliseconds: float, throughput: float, **changes: Any) -> Candidate:
    seconds = milliseconds / 1000
    found = {name: Percentile(seconds * share, seconds / 4, seconds * 2) for name, share in (("p50", 0.5), ("p99", 1))}
    described = {"model": "k3fp", "format": "keras", "device": "cpu:0", "xla": False, "precision": "float32"}
    measured = {"scenario": "multi-stream", "percentiles": found, "throughput": throughput, "stable": True}
    return Candidate(**{**described, **measured, "batch_size": batch_size, **changes})


MEASURED = (candidate(1, 1, 1000.0), candidate(8, 9.5, 4000.0), candidate(1, 0.5, 1500.0, xla=True))

# Bins from 0.25 ms, an eighth of a doubling wide: most at 0.25 ms, and one at 8 ms.
WINDOW = LiveWindow(MEASURED[0].title, 1, 950.0, 144, (90, *[0] * 39, 1), 0.0003, 0.0078)


class Bench:
    """Measures at once, but waits before the end until it may go on, or is cancelled."""

    may_end: ClassVar[Event]
    asked: ClassVar[list[tuple[Sequence[Path], BenchOptions]]]
    measured: ClassVar[tuple[Candidate, ...]] = MEASURED
    problem: ClassVar[str] = ""
    window: ClassVar[LiveWindow] = WINDOW

    def __init__(self, directories: Sequence[Path], options: BenchOptions) -> None:
        self.asked.append((directories, options))
        self.notes: tuple[str, ...] = ()
        self._is_cancelled = False

    def measure(self, on_part: Callable[[object], object], *, is_live: bool, on_doing: object) -> tuple[str, ...]:
        assert is_live
        on_part(ExamplesDone(256, 1024))
        for each in self.measured:
            on_part(each)
        on_part(self.window)
        self.may_end.wait()
        self.notes = ("a note[/]\x1b[2J",)
        if self._is_cancelled or self.problem:
            raise RunError(self.problem or "the engine exited unexpectedly")
        return self.notes

    def cancel(self) -> None:
        self._is_cancelled = True
        self.may_end.set()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Bench]]:
    monkeypatch.setattr(Bench, "may_end", Event(), raising=False)
    monkeypatch.setattr(Bench, "asked", [], raising=False)
    monkeypatch.setattr(bench_screen, "InferenceBench", Bench)
    monkeypatch.setattr(bench_screen, "device_warnings", lambda _: ())
    yield Bench
    Bench.may_end.set()


async def open_bench(pilot: Pilot[None], *, started: bool = True) -> BenchScreen:
    app = pilot.app
    assert isinstance(app, StubApp)
    app.open_screen(Screens.BENCH, (Path("k3fp-a"),))
    await until(pilot, lambda: isinstance(app.screen, BenchScreen), "the screen")
    await shows(pilot, "scenario")
    if started:
        await pilot.press("enter")
        await shows(pilot, "measuring k3fp")
    assert isinstance(app.screen, BenchScreen)
    return app.screen


@pytest.mark.parametrize("size", [(80, 24), *more((120, 40)), (200, 50)])
async def test_what_is_measured_is_shown_at_once(home: Path, bench: type[Bench], size: tuple[int, int]) -> None:
    async with BareApp().run_test(size=size) as pilot:
        screen = await open_bench(pilot)
        await shows(pilot, "measuring k3fp on cpu:0, float32: batch 1", "950 examples/s", "p50 300 µs", "p99 7.80 ms")
        await shows(pilot, "examples/s by batch size", "k3fp on cpu:0 with XLA, float32, multi-stream")
        headers = {line.rstrip("│ ") for line in text_of(pilot).splitlines() if "p99 (95%)" in line}
        assert len(headers) == 1, "the columns of all tables are at the same places"
        one, other = screen.query_one(ThroughputChart).series
        assert one.points == ((0, 1000.0), (192, 4000.0))
        assert other.points == ((0, 1500.0),)
        assert bench.asked[0][1] == BenchOptions()
        bench.may_end.set()
        await shows(pilot, "Batch 8 of k3fp on cpu:0, float32 has the best throughput: 4.00k examples/s")
        await shows(pilot, "p99 ms over examples/s")
        assert screen.query_one(LatencyHistogram).display is (size[0] >= 160), "where there is room for three"
        await shows(pilot, "a note[/]\\x1b[2J")


async def test_the_histogram_is_on_a_logarithmic_axis_with_both_percentiles(home: Path, bench: type[Bench]) -> None:
    async with BareApp().run_test(size=(120, 40)) as pilot:
        screen = await open_bench(pilot)
        plot = screen.query_one(LatencyHistogram).plot(WINDOW)
        bars, p50, p99 = plot.series
        assert isinstance(plot.x, LogAxis)
        assert (bars.kind, bars.y.tolist()[0], bars.y.sum()) == ("bars", 90, 91)
        assert bars.x[0] == pytest.approx(2**18 / 1e6)
        assert (p50.kind, p50.x.tolist(), p99.x.tolist()) == ("rule", [pytest.approx(0.3)], [pytest.approx(7.8)])


async def test_in_the_scenario_server_the_rate_is_named(
    home: Path, bench: type[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = replace(WINDOW, rate=1000.0)
    monkeypatch.setattr(bench, "window", tried)
    async with BareApp().run_test(size=(120, 40)) as pilot:
        screen = await open_bench(pilot, started=False)
        await pilot.press("shift+tab", "enter", "down", "down", "enter", "tab", *"20ms", "enter")
        await shows(pilot, "batch 1, tried 1.00k requests/s", "950/s answered")
        histogram = screen.query_one(LatencyHistogram)
        histogram.plot(tried)
        wide = histogram.plot(replace(tried, counts=(*tried.counts, *[0] * 80, 1)))
        histogram.live = replace(tried, rate=500.0)
        assert isinstance(wide.x, LogAxis)
        assert histogram.plot(histogram.live).x.high < wide.x.high


async def test_choices_reach_the_engine_and_the_verdict(home: Path, bench: type[Bench]) -> None:
    async with BareApp().run_test(size=(120, 40)) as pilot:
        await open_bench(pilot, started=False)
        await pilot.press(*"5ms", "tab", *"9000", "tab", "tab", *"cpu", "tab", "tab", *"float32", "enter", "ctrl+s")
        await shows(pilot, "measuring k3fp")
        options = bench.asked[0][1]
        assert (options.target_latency, options.devices, options.precisions) == (0.005, ("cpu",), ("float32",))
        bench.may_end.set()
        await shows(pilot, "has the best throughput within 5.00 ms at p99", "9000 requests/s take 6 machines")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("10", "'10' is not a latency: give one with its unit"),
        pytest.param("\tfast", "'fast' must be a number above 0", marks=pytest.mark.campaign),
        ("\t\t0", "'50' "),
        pytest.param("\t\t\ttpu", "'tpu' must be cpu, gpu", marks=pytest.mark.campaign),
        pytest.param("\t\t\t\t\tint8", "'int8' must be one or more of float32", marks=pytest.mark.campaign),
        pytest.param("[/]", "'[/]' is not a latency", marks=pytest.mark.campaign),
        ("\t\t\t[@click=app.quit]cpu", "'[@click=app.quit]cpu' must be cpu, gpu"),
    ],
)
async def test_a_wrong_choice_is_said_and_starts_nothing(
    home: Path, bench: type[Bench], keys: str, message: str
) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        screen = await open_bench(pilot, started=False)
        await pilot.press(*("tab" if key == "\t" else key for key in keys))
        if message == "'50' ":  # 50 seconds are a valid limit
            await pilot.press("0", "0", "0", "0")
            message = "must be a number from 0.1 to 3600"
        await pilot.press("enter")
        await shows(pilot, message)
        assert not bench.asked
        assert screen.has_class("-form")


async def test_scenarios_and_targets_that_contradict_each_other_are_refused(home: Path, bench: type[Bench]) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        screen = await open_bench(pilot, started=False)
        await pilot.press("shift+tab", "enter", "down", "down", "enter")  # server
        await shows(pilot, "give a target latency")
        await pilot.press("ctrl+s")
        assert screen.has_class("-form")
        await pilot.press("tab", *"20ms")
        await hides(pilot, "give a target latency")
        await pilot.press("shift+tab", "enter", "up", "enter")  # offline
        await shows(pilot, "offline has no latencies")


async def test_going_back_ends_the_engine_and_saves_what_was_measured(home: Path, bench: type[Bench]) -> None:
    async with BareApp().run_test(size=(80, 24), notifications=True) as pilot:
        await open_bench(pilot)
        await pilot.press("escape")
        await shows(pilot, "End the measurement?", "measured already are saved")
        assert not bench.may_end.is_set()
        await pilot.press("e")
        await until(pilot, bench.may_end.is_set, "the end of the engine")
        await shows(pilot, "Ended. Batch 8", "Saved as 2 runs")
        found = list_runs()
        assert [run.info.kind for run in found if run.info] == ["bench", "bench"]
        assert all(run.id[:4] in text_of(pilot) for run in found)


async def test_what_keeps_runs_from_being_measured_is_said(
    home: Path, bench: type[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "problem", "no usable TensorFlow")
    monkeypatch.setattr(bench, "measured", ())
    monkeypatch.setattr(bench_screen, "device_warnings", lambda _: ("run m8w3 is training on cpu:0",))
    async with BareApp().run_test(size=(80, 24), notifications=True) as pilot:
        await open_bench(pilot)
        await shows(pilot, "run m8w3 is training")
        bench.may_end.set()
        await shows(pilot, "no usable TensorFlow")
        assert not list_runs()


async def test_after_an_error_there_are_conclusions_and_a_way_back_to_the_choices(
    home: Path, bench: type[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "problem", "the engine exited: [/]")
    async with BareApp().run_test(size=(120, 40)) as pilot:
        screen = await open_bench(pilot)
        await pilot.press("e")
        assert not screen.has_class("-form")
        bench.may_end.set()
        await shows(
            pilot, "the engine exited: [/]", "Batch 8 of k3fp on cpu:0, float32 has the best throughput", "a note"
        )
        monkeypatch.setattr(bench, "problem", "")
        monkeypatch.setattr(bench, "measured", MEASURED[:1])
        bench.may_end.clear()
        await pilot.press("e")
        await shows(pilot, "scenario", "k3fp-a")
        assert screen.focused is screen.query_one("#target_latency")
        await pilot.press(*"10ms", "enter")
        await shows(pilot, "measuring k3fp")
        for word in ("Batch 8", "with XLA", "a note"):
            await hides(pilot, word)
        assert len(screen.query_one(ThroughputChart).series) == 1
        bench.may_end.set()
        await shows(pilot, "Batch 1 of k3fp on cpu:0, float32 has the best throughput within 10.0 ms")
        assert [options.target_latency for _, options in bench.asked] == [None, 0.01]


async def test_a_run_without_a_checkpoint_is_not_measured(home: Path, bench: type[Bench]) -> None:
    engine = FakeEngine().begin()
    async with StubApp(engine.directory).run_test(size=(120, 40), notifications=True) as pilot:
        await shows(pilot, "building")
        actions = ("bench", "export", "predict")
        assert [pilot.app.screen.check_action(action, ()) for action in actions] == [None] * 3, "not yet"
        await pilot.press("b")
        assert not isinstance(pilot.app.screen, BenchScreen)
    engine.close()


async def test_arrows_go_to_other_fields(home: Path, bench: type[Bench]) -> None:
    async with BareApp().run_test(size=(80, 24)) as pilot:
        pilot.app.push_screen(BenchScreen((Path("k3fp"),)))
        await shows(pilot, "target latency")
        names = ["target_latency", "target_rate", "seconds", "devices", "xla", "precisions"]
        for key, expected in [*(("down", each) for each in names[1:]), *(("up", each) for each in names[-2::-1])]:
            await pilot.press(key)
            assert pilot.app.focused is not None
            assert expected in [each.id for each in pilot.app.focused.ancestors_with_self]
        await pilot.press("shift+tab", "enter")
        await until(pilot, lambda: pilot.app.screen.query_one("#scenario", Picker).is_open, "the list")


async def test_a_double_press_opens_one_screen(home: Path, bench: type[Bench]) -> None:
    engine = FakeEngine().begin().build().train(150)
    engine.save()
    engine.end()
    engine.close()
    async with StubApp(engine.directory).run_test(size=(120, 40)) as pilot:
        await shows(pilot, "finished")
        before = pilot.app.screen_stack
        for _ in range(2):
            await before[-1].run_action("bench")
            await pilot.pause()
        await until(pilot, lambda: isinstance(pilot.app.screen, BenchScreen), "the screen")
        await shows(pilot, "scenario")
        assert pilot.app.screen_stack[:-1] == before
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen_stack == before, "the screen below")
