"""How long a race still takes."""

from dataclasses import replace

import pytest

from accel_engine.race.configuration import ConfigurationResult, ConfigurationState
from accel_engine.race.race import RaceTime
from engine.race.test_comparison import REFERENCE, REMAT, XLA


def test_configurations_to_come_take_as_long_to_compile_as_those_before() -> None:
    now = 0.0
    remaining = RaceTime(5.0, lambda: now)
    for configuration in (REFERENCE, XLA, REMAT):
        remaining.note(ConfigurationResult(configuration))
    reference = ConfigurationResult(REFERENCE, ConfigurationState.COMPILING)
    remaining.note(reference)
    now = 10.0
    assert remaining.of_race() is None
    remaining.note(replace(reference, state=ConfigurationState.READY))
    each = 10.0 + 0.5 + 2 * 1.2 + (5.0 - 1.2) * 1.2
    assert remaining.of_race() == pytest.approx(2 * each)
    xla = ConfigurationResult(XLA, ConfigurationState.COMPILING)
    remaining.note(xla)
    now = 14.0
    assert remaining.of_race() == pytest.approx(2 * each - 4.0)
    now = 20.0
    remaining.note(replace(xla, state=ConfigurationState.READY))
    remaining.note(replace(xla, state=ConfigurationState.MEASURING, rates=(1.0,) * 20))
    assert remaining.of_race() == pytest.approx(each + (5.0 - 20 * 0.2) * 1.2)
    remaining.note(replace(xla, state=ConfigurationState.FINISHED))
    remaining.note(ConfigurationResult(REMAT, ConfigurationState.FAILED))
    assert remaining.of_race() == 0.0
