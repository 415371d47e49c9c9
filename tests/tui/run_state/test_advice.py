"""The curves of the series that show evidence."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accel_engine.advice import Evidence, read_recorded
from accel_engine.events import Validated
from accel_tui.run_state.advice import evidence_curves
from tui.fake_engine import FakeEngine
from tui.stand_in_findings import POOR, SLOW


@pytest.mark.parametrize("steps", [100, 5000])
def test_a_curve_has_the_values_of_its_steps_with_gaps_where_there_are_none(home: Path, steps: int) -> None:
    loss = np.arange(steps, dtype=np.float32)
    loss[40:80] = np.nan
    engine = FakeEngine().begin().build()
    engine.chunk(loss, seconds=10.0)
    engine.say(Validated, epoch=1, step=steps, metrics={"loss": 0.5}, seconds=0.1)
    recorded = read_recorded(engine.directory)
    engine.close()
    finding = replace(POOR, evidence=(Evidence("It rises", "validation_loss", (0, steps)),))
    found = evidence_curves(recorded, (finding, SLOW))
    assert found.keys() == {"loss", "steps/s"}
    curve, validation = found["loss"].curve, found["loss"].validation
    assert curve.end_step == steps
    assert curve.first_step == 0
    assert int(curve.finite.sum()) == steps - 40
    assert np.nanmax(curve.high) == steps - 1
    assert np.isnan(curve.means[50 // curve.width])
    assert validation == ((steps, 0.5),)


def test_a_reading_of_a_device_has_no_curve(home: Path) -> None:
    engine = FakeEngine().begin().build().train(10)
    engine.sample()
    recorded = read_recorded(engine.directory)
    engine.close()
    finding = replace(SLOW, evidence=(Evidence("It idles", "utilization"), Evidence("No series")))
    found = evidence_curves(recorded, (finding,))
    assert found.keys() == {"utilization"}
    assert not found["utilization"].curve.end_step
