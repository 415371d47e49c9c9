"""Energy from the driver's counter, or from its powers where it does not count."""

import pytest

from accel_engine.devices.energy_meter import EnergyMeter, joules
from waiting import wait_until


class NVMLError(Exception):
    pass


class Driver:
    """Counts millijoules, and tells milliwatts; ``None`` for what it refuses."""

    NVMLError = NVMLError

    def __init__(self, energy: int | None, power: int | None) -> None:
        self.energy, self.power, self.powers_read = energy, power, 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: object) -> int:  # noqa: N802
        return self._given(self.energy)

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:  # noqa: N802
        self.powers_read += 1
        return self._given(self.power)

    def _given(self, value: int | None) -> int:
        if value is None:
            raise NVMLError
        return value


def test_counted_energy_is_the_difference() -> None:
    driver = Driver(energy=5_000, power=100_000)
    meter = EnergyMeter(driver, "gpu")
    meter.start()
    driver.energy = 7_500
    assert meter.stop() == 2.5
    assert driver.powers_read == 0


def test_powers_are_integrated_where_energy_is_not_counted() -> None:
    times = iter(range(10_000))
    driver = Driver(energy=None, power=150_000)
    meter = EnergyMeter(driver, "gpu", lambda: next(times))
    for _ in range(2):  # a meter can be used again
        driver.powers_read = 0
        meter.start()
        wait_until(lambda: driver.powers_read >= 2)
        found = meter.stop()
        assert found == 150 * (driver.powers_read - 1)


def test_a_driver_that_tells_nothing_gives_none() -> None:
    meter = EnergyMeter(Driver(energy=None, power=None), "gpu")
    meter.start()
    assert meter.stop() is None


def test_powers_are_integrated_by_the_trapezoidal_rule() -> None:
    assert joules([(0.0, 100.0), (2.0, 200.0), (3.0, 200.0)]) == pytest.approx(500)
    assert joules([(0.0, 100.0)]) is None
