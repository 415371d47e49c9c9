"""Requests that arrive by a schedule; a stall delays those behind it, and each of them counts."""

import numpy as np
import pytest

from accel_engine.inference.measurement.percentiles import percentiles
from accel_engine.inference.measurement.rate_search import OpenLoop, highest_rate, is_within, poisson_schedule, serve_at
from accel_engine.inference.measurement.stability import ClosedLoop, Measured

from .stub import FakeTimer, Stub

MILLISECOND = 1_000_000
EVERY_10_MS = np.arange(1, 1001) * 10 * MILLISECOND


def test_a_stall_delays_every_request_that_arrives_meanwhile() -> None:
    """Coordinated omission: the closed loop sees one slow request of a thousand, its users a hundred."""
    times = [*[MILLISECOND] * 500, 1000 * MILLISECOND, MILLISECOND]
    timer = FakeTimer()
    arrived = OpenLoop(Stub(timer, *times), EVERY_10_MS, timer=timer).window(60).latencies
    assert np.count_nonzero(arrived > 5 * MILLISECOND) == 111
    assert percentiles(arrived)["p90"].value > 0.05
    assert arrived.max() == 1000 * MILLISECOND
    timer = FakeTimer()
    in_turn = ClosedLoop(Stub(timer, *times), "a", examples=1, timer=timer, capacity=1000).window(60).latencies
    assert np.count_nonzero(in_turn > 5 * MILLISECOND) == 1
    assert percentiles(in_turn)["p99"].value == 0.001


def test_requests_that_wait_are_served_together() -> None:
    timer = FakeTimer()
    stub = Stub(timer, MILLISECOND, 35 * MILLISECOND, MILLISECOND)
    window = OpenLoop(stub, EVERY_10_MS[:7], largest_batch=2, timer=timer).window(1)
    assert stub.served == [1, 1, 2, 1, 1, 1]
    assert (window.latencies / MILLISECOND).tolist() == [1, 35, 26, 16, 7, 1, 1]


def test_windows_continue_the_schedule() -> None:
    timer = FakeTimer()
    loop = OpenLoop(Stub(timer, MILLISECOND), EVERY_10_MS[:100], timer=timer)
    windows = []
    while not loop.is_over:
        windows.append(loop.window(0.25))
    assert [window.requests for window in windows] == [25] * 4
    assert all((window.latencies == MILLISECOND).all() for window in windows)
    assert loop.window(1).requests == 0


def test_arrivals_are_those_of_a_poisson_process_and_repeatable() -> None:
    schedule = poisson_schedule(1000, 20, seed=3)
    gaps = np.diff(schedule) / 1e9
    assert len(schedule) == pytest.approx(20_000, rel=0.03)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)
    assert schedule.max() < 20e9
    assert (schedule == poisson_schedule(1000, 20, seed=3)).all()
    assert len(poisson_schedule(0.01, 1, seed=1)) <= 1


def served(rate: float, bound: float = 0.1, largest_batch: int = 1) -> Measured:
    timer = FakeTimer()
    stub = Stub(timer, MILLISECOND)
    return serve_at(rate, stub, largest_batch=largest_batch, bound=bound, seconds=100, timer=timer)


def test_the_mean_latency_is_that_of_queueing_theory() -> None:
    """With Poisson arrivals and a constant time (M/D/1), a load of 0.2 waits for 0.2 / (2 * 0.8) of that time."""
    timer = FakeTimer()
    loop = OpenLoop(Stub(timer, MILLISECOND), poisson_schedule(200, 200), timer=timer)
    assert loop.window(1000).latencies.mean() / MILLISECOND == pytest.approx(1.125, rel=0.01)


def test_the_highest_rate_has_its_99th_percentile_just_within_the_bound() -> None:
    found = highest_rate(lambda rate: served(rate, 0.005), 1000, 0.005)
    assert found.measured.percentiles["p99"].value <= 0.005
    assert served(1.1 * found.rate, 0.005).percentiles["p99"].value > 0.005
    # The tail of the waiting time of an M/D/1 queue: 0.9% wait for more than 4 ms at a load of 0.57.
    assert 520 < found.rate < 620


def test_batches_serve_more() -> None:
    alone = highest_rate(lambda rate: served(rate, 0.005), 1000, 0.005).rate
    together = highest_rate(lambda rate: served(rate, 0.005, largest_batch=4), 4000, 0.005).rate
    assert together > 3 * alone


def test_a_bound_that_no_request_keeps_gives_no_rate() -> None:
    found = highest_rate(lambda rate: served(rate, 0.0005), 1000, 0.0005)
    assert found.rate == 0
    assert found.measured.percentiles["p50"].value >= 0.001


def test_an_overloaded_server_does_not_settle_and_ends_early() -> None:
    timer = FakeTimer()
    found = serve_at(2000, Stub(timer, MILLISECOND), largest_batch=1, bound=0.05, seconds=10, timer=timer)
    assert not found.stable
    assert timer.time < 5e9
    assert served(300).stable


def test_the_rate_is_not_halved_below_the_lowest() -> None:
    tried: list[float] = []

    def try_rate(rate: float) -> Measured:
        tried.append(rate)
        return served(rate, 0.0005)

    assert highest_rate(try_rate, 1000, 0.0005, lowest=200).rate == 0
    assert tried == [950, 475, 237.5]


def test_at_least_one_request_is_measured() -> None:
    timer = FakeTimer()
    found = serve_at(0.001, Stub(timer, MILLISECOND), largest_batch=1, bound=0.1, seconds=0.1, timer=timer)
    assert (found.requests, found.is_complete) == (1, True)
    assert found.percentiles["p99"].value == 0.001


def test_a_stall_in_the_warm_up_alone_does_not_reject_a_rate() -> None:
    timer = FakeTimer()
    stub = Stub(timer, 500 * MILLISECOND, MILLISECOND)
    found = serve_at(100, stub, largest_batch=1, bound=0.1, seconds=10, timer=timer)
    assert found.is_complete
    assert is_within(found, 0.1)


def test_a_rate_that_was_given_up_is_not_within_the_bound() -> None:
    timer = FakeTimer()
    found = serve_at(2000, Stub(timer, MILLISECOND), largest_batch=1, bound=0.05, seconds=10, timer=timer)
    assert not found.is_complete
    assert not is_within(found, 1000.0)
