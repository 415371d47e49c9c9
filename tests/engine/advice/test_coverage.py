"""What advice looked at, and what was not recorded."""

from pathlib import Path

import numpy as np

from accel_engine.advice import coverage, read_recorded
from accel_engine.events import TimeMeasured
from accel_engine.run.diagnostics import Layer, LayerTable, ValidationReport
from tui.example_reports import binary
from tui.fake_engine import FakeEngine


def test_what_was_recorded_is_counted_and_the_rest_is_named(home: Path) -> None:
    engine = FakeEngine().begin().build()
    assert coverage(read_recorded(engine.directory)).missing == (
        "steps",
        "validations",
        "readings of devices",
        "time by activity",
        "layers",
        "validation examples",
    )
    engine.train(100)
    engine.end_epoch()
    engine.sample()
    engine.say(TimeMeasured, first_step=0, step=100, seconds=2.0, spent={"steps": 1.5})
    engine.writer.write_diagnostics(ValidationReport((binary(),)), 100)
    engine.writer.write_diagnostics(LayerTable((Layer("dense", "Dense", 0, (10,), 1, 1, 1e6),), 1e6), 0)
    seen = coverage(read_recorded(engine.directory))
    engine.close()
    assert (seen.steps, seen.epochs, seen.validations, seen.readings) == (100, 1, 1, 1)
    assert seen.missing == ()


def test_a_run_without_steps_has_no_series(home: Path) -> None:
    engine = FakeEngine().begin()
    recorded = read_recorded(engine.directory)
    engine.close()
    assert recorded.steps == 0
    assert np.size(recorded.of("loss").mean) == 0
