"""What is told of a candidate while it is measured, and that telling it is in no figure."""

import numpy as np
import pytest

from accel_engine.inference.bench_runtime import BenchSettings, RuntimeBench
from accel_engine.inference.measurement.percentiles import PER_DOUBLING, LiveWindow, percentiles
from accel_engine.inference.measurement.window import Window
from accel_engine.json_values import convert, to_plain

from .measurement.stub import FakeTimer
from .test_bench_runtime import EXAMPLES, SETUP, KnownRuntime, settings


def window(*milliseconds: float, examples: int = 2) -> Window:
    latencies = np.array([1_000_000 * each for each in milliseconds], np.int64)
    return Window(latencies, len(latencies), examples * len(latencies), 10_000_000)


def test_the_requests_of_windows_are_counted_by_latency() -> None:
    live = LiveWindow.of("m", 2, [window(1.0, 2.0), window(1.0, 1.01), window(8.0)], 300.0)
    assert (live.title, live.batch_size, live.throughput, live.rate) == ("m", 2, pytest.approx(10 / 0.03), 300.0)
    assert sum(live.counts) == 5
    assert (live.counts[0], live.counts[PER_DOUBLING], live.counts[-1]) == (3, 1, 1)
    edges = live.edges()
    assert edges[0] <= 0.001 < edges[1]
    assert edges[-2] <= 0.008 < edges[-1]
    assert edges[PER_DOUBLING] / edges[0] == pytest.approx(2.0)
    assert (live.p50, live.p99) == (0.00101, 0.008)
    assert convert(to_plain(live), LiveWindow) == live


def test_its_percentiles_are_those_of_the_results() -> None:
    latencies = np.random.default_rng(0).lognormal(13, 1, 1000).astype(np.int64)
    live = LiveWindow.of("m", 1, [Window(latencies, 1000, 1000, 1_000_000_000)])
    found = percentiles(latencies)
    assert (live.p50, live.p99) == (found["p50"].value, found["p99"].value)


def test_without_latencies_there_is_a_throughput() -> None:
    live = LiveWindow.of("m", 8, [Window(np.empty(0, np.int64), 5, 40, 1_000_000_000)])
    assert (live.throughput, live.counts, live.p50) == (40.0, (), 0.0)


@pytest.mark.parametrize("scenario", ["multi-stream", "server"])
def test_what_is_told_last_of_the_rate_that_counts_is_the_result(scenario: str) -> None:
    timer, seen = FakeTimer(), []
    changes = {"scenario": scenario, "batch_sizes": (8,), "target_latency": 0.05, "seconds": 2.0}
    watched = settings(**changes, on_live=seen.append)
    (found,) = RuntimeBench(SETUP, KnownRuntime(timer), EXAMPLES, watched, timer=timer).candidates()
    rate = found.throughput if scenario == "server" else 0.0
    last = [live for live in seen if live.rate == rate][-1]
    assert sum(last.counts) == found.requests
    assert (last.p50, last.p99) == (found.percentiles["p50"].value, found.percentiles["p99"].value)
    assert len({live.rate for live in seen}) == (len(seen) if scenario == "server" else 1)


@pytest.mark.parametrize("scenario", ["single-stream", "multi-stream", "offline", "server"])
def test_time_that_a_watcher_takes_is_in_no_figure(scenario: str) -> None:
    def measured(watcher_takes: int | None) -> tuple[object, ...]:
        timer, seen = FakeTimer(), []

        def watch(live: LiveWindow) -> None:
            seen.append(live)
            timer.time += watcher_takes or 0

        sizes = (1,) if scenario == "single-stream" else (1, 8)
        changes = {"scenario": scenario, "batch_sizes": sizes, "target_latency": 0.05, "seconds": 2.0}
        watched = settings(**changes, on_live=None if watcher_takes is None else watch)
        assert isinstance(watched, BenchSettings)
        found = list(RuntimeBench(SETUP, KnownRuntime(timer), EXAMPLES, watched, timer=timer).candidates())
        if watcher_takes is not None:
            assert {each.batch_size for each in seen} == set(sizes)
            assert {each.title for each in seen} == {SETUP.title}
        return tuple((each.batch_size, each.throughput, each.percentiles) for each in found)

    alone = measured(None)
    assert alone == measured(0)
    assert alone == measured(50_000_000)
