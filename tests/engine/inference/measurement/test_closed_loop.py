import pytest

from accel_engine.inference.measurement.stability import ClosedLoop, measure

from .stub import FakeTimer, Stub

MILLISECOND = 1_000_000


def test_a_window_has_the_latency_of_each_request_and_their_throughput() -> None:
    timer = FakeTimer()
    stub = Stub(timer, 2 * MILLISECOND, 3 * MILLISECOND, 5 * MILLISECOND)
    window = ClosedLoop(stub, "ab", examples=4, timer=timer).window(0.01)
    assert window.latencies.tolist() == [2 * MILLISECOND, 3 * MILLISECOND, 5 * MILLISECOND]
    assert stub.served == ["a", "b", "a"]
    assert (window.requests, window.examples, window.throughput) == (3, 12, 1200)


def test_a_window_has_at_least_one_request_and_no_more_than_fit() -> None:
    timer = FakeTimer()
    slow = ClosedLoop(Stub(timer, 10**9), "a", examples=1, timer=timer)
    assert slow.window(0.001).requests == 1
    assert ClosedLoop(Stub(timer, 1), "a", examples=1, timer=timer, capacity=7).window(1).requests == 7


def test_offline_has_a_throughput_and_no_latencies() -> None:
    timer = FakeTimer()
    loop = ClosedLoop(Stub(timer, MILLISECOND), "a", examples=8, timer=timer, keeps_latencies=False)
    found = measure(loop, 1.0, timer=timer)
    assert (found.percentiles, found.throughput, found.stable) == ({}, 8000, True)


def test_what_settles_counts_and_what_was_before_is_warm_up() -> None:
    timer = FakeTimer()
    loop = ClosedLoop(
        Stub(timer, 300 * MILLISECOND, *[5 * MILLISECOND] * 20, MILLISECOND), "a", examples=1, timer=timer
    )
    found = measure(loop, 1.0, timer=timer)
    assert found.stable
    assert (found.warm_up_requests, found.warm_up_seconds) == (21, 0.4)
    assert (found.throughput, found.requests) == (1000, 300)
    assert found.percentiles["p50"].value == 0.001
    assert found.percentiles["p999"].value == 0.001


def test_what_never_settles_ends_at_the_limit_and_says_so() -> None:
    timer = FakeTimer()
    growing = (round(MILLISECOND * 1.01**index) for index in range(10_000))
    found = measure(ClosedLoop(Stub(timer, *growing), "a", examples=1, timer=timer), 2.0, timer=timer)
    assert not found.stable
    assert found.disagreement > 0.05
    assert timer.time == pytest.approx(2e9, rel=0.1)


def test_a_limit_for_less_than_three_requests_does_not_settle() -> None:
    timer = FakeTimer()
    found = measure(ClosedLoop(Stub(timer, 10**9), "a", examples=1, timer=timer), 1.5, timer=timer)
    assert (found.stable, found.requests) == (False, 2)
