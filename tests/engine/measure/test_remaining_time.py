"""How long the rest of a job takes."""

from accel_engine.finders.throughput import expected_sizes
from accel_engine.measure.remaining_time import RemainingTime


def test_parts_to_come_take_as_long_as_those_before() -> None:
    now = 0.0
    remaining = RemainingTime(lambda: now)
    remaining.begin()
    assert remaining.seconds_left(6) is None, "none has ended"
    now = 10.0
    remaining.end()
    remaining.begin()
    assert remaining.seconds_left(6, 2.0) == 62.0
    now = 14.0
    assert remaining.seconds_left(6, 2.0) == 58.0
    assert remaining.seconds_left(1, 2.0) == 8.0
    now = 50.0
    assert remaining.seconds_left(1, 2.0) == 0.0
    remaining.end(counts=False)
    assert remaining.seconds_left(1) == 10.0, "what does not count changes nothing"


def test_parts_that_are_counted_share_the_time_since_the_beginning() -> None:
    now = 0.0
    remaining = RemainingTime(lambda: now)
    remaining.begin()
    now = 6.0
    remaining.count(3)
    assert remaining.seconds_left(10) == 14.0
    now = 10.0
    remaining.count(10)
    assert remaining.seconds_left(10) == 0.0


def test_sizes_are_doubled_up_to_the_largest_and_two_are_around_the_knee() -> None:
    assert expected_sizes(16, 100) == len((16, 32, 64)) + 2
    assert expected_sizes(32, None) is None, "a stream has no number of examples"
