import time

import pytest

from accel_engine import clock


def test_it_is_the_wall_clock_s_time() -> None:
    assert abs(clock.now() - time.time()) < 60


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_step_of_the_wall_clock_does_not_move_it(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    before, wall = clock.now(), time.time
    monkeypatch.setattr("time.time", lambda: wall() + step)
    assert 0 <= clock.now() - before < 600


def test_it_moves_on() -> None:
    times = [clock.now() for _ in range(1000)]
    assert times == sorted(times)
    assert times[-1] > times[0]


def test_a_run_begins_by_the_wall_clock_as_it_is_then(monkeypatch: pytest.MonkeyPatch) -> None:
    before, wall = clock.now(), time.time
    monkeypatch.setattr("time.time", lambda: wall() + 3600)
    monkeypatch.setattr(clock, "OFFSET", clock.OFFSET)
    clock.read_wall_clock()
    assert 3590 < clock.now() - before < 4200
