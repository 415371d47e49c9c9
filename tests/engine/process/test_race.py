"""A race of a tiny plan with real processes."""

import threading
from pathlib import Path

import pytest

from accel_engine.devices import detect
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import check
from accel_engine.race.comparison import find_best
from accel_engine.race.configuration import ConfigurationKind
from accel_engine.race.configuration_result import Best, ConfigurationResult, ConfigurationState
from accel_engine.race.race import Race, RaceOptions
from accel_engine.race.remembered import recall


def test_real_processes_are_measured_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One configuration trains as the plan does, another one fails to build, and the race is stopped in its turns."""
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path))
    (tmp_path / "model.py").write_text(
        "import keras\n"
        "def build(input_shape, classes):\n"
        "    layers = [keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dropout(0.5),\n"
        "              keras.layers.Dense(classes, 'softmax')]\n"
        "    if keras.config.dtype_policy().name != 'float32':\n"
        "        raise ValueError('float32 only')\n"
        "    return keras.Sequential(layers)\n"
    )
    devices = detect().devices
    resolved = check(Plan(model=f"{tmp_path}/model.py:build", data="digits", devices=("cpu:0",)), devices)
    seen, stopped = list[ConfigurationResult](), threading.Event()

    def take(result: ConfigurationResult) -> None:
        seen.append(result)
        if result.title == "rematerialization" and len(result.rates) >= 3:  # too few to end it early
            stopped.set()

    options = RaceOptions(seconds=60.0, kinds=(ConfigurationKind.REMAT, ConfigurationKind.PRECISION))
    race = Race(resolved, devices, options, take, stopped.is_set)
    found = {each.title: each for each in race.run()}
    assert race.was_stopped
    configuration, failed = found["rematerialization"], found["mixed_bfloat16"]
    assert failed.state is ConfigurationState.FAILED
    assert "float32 only" in failed.reason
    assert configuration.losses is not None
    assert configuration.losses.steps >= 2
    assert configuration.losses.difference is not None
    assert configuration.losses.difference <= 1e-5  # with the same dropout
    assert configuration.memory_of == "host"
    assert (configuration.examples_per_second or 0.0) > 0
    assert found["this plan"].rates
    assert find_best(found.values())[Best.FASTEST] in found.values()
    assert recall(resolved, devices) is None  # after three turns
    assert list((tmp_path / "runs").iterdir()) == []  # nothing is left
