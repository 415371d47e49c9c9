"""How long the rest of a search for a batch size takes."""

from accel_engine.finders.throughput import RemainingSizes


def test_sizes_to_come_take_as_long_as_those_before() -> None:
    now = 0.0
    remaining = RemainingSizes(2.0, lambda: now)
    remaining.expect_doublings(8, 100)
    remaining.begin()
    assert remaining.seconds_left() is None, "no size has been measured"
    now = 10.0
    remaining.end()
    remaining.expect_doublings(16, 100)
    remaining.begin()
    assert remaining.seconds_left() == 62.0, "16, 32, 64, two around the knee, and the knee again, longer"
    now = 14.0
    assert remaining.seconds_left() == 58.0
    remaining.expect(0)
    assert remaining.seconds_left() == 8.0
    now = 50.0
    assert remaining.seconds_left() == 0.0
    remaining.expect_doublings(32, None)
    assert remaining.seconds_left() is None, "a stream has no number of examples"
