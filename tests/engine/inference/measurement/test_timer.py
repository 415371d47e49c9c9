from accel_engine.inference.measurement.stability import ClosedLoop
from accel_engine.inference.measurement.window import SystemTimer


def test_a_wait_does_not_end_early() -> None:
    timer = SystemTimer()
    due = timer.now() + 1_000_000
    timer.wait_until(due)
    assert timer.now() >= due
    timer.wait_until(due - 1)


def test_a_server_that_spins_a_known_time_is_measured_as_no_less() -> None:
    timer = SystemTimer()

    def spin(nanoseconds: int) -> None:
        end = timer.now() + nanoseconds
        while timer.now() < end:
            pass

    window = ClosedLoop(spin, [500_000], examples=1).window(0.05)
    assert window.latencies.min() >= 500_000
    assert window.nanoseconds >= window.latencies.sum()
