"""A race of a tiny plan with real processes."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.devices import detect
from accel_engine.measure.plan_trials import PlanTrials
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_engine.race.comparison import find_best
from accel_engine.race.configuration import ConfigurationKind, ConfigurationResult, ConfigurationState
from accel_engine.race.race import Race, RaceOptions
from accel_engine.race.remembered_races import remembered_result
from accel_engine.requests.try_plan import TrialStart


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
    resolved = resolve_to_train(Plan(model=f"{tmp_path}/model.py:build", data="digits", devices=("cpu:0",)), devices)
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
    assert not find_best(found.values())  # after three turns
    assert remembered_result(resolved, devices) is None
    assert list((tmp_path / "runs").iterdir()) == []  # nothing is left


@pytest.mark.campaign
def test_workers_are_measured_beside_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers share each step, with the losses of one process."""
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path))
    devices = tuple(replace(device, cores=1) for device in detect().of_kind("cpu"))  # without mirrored
    resolved = resolve_to_train(Plan(model="mlp", data="digits", strategy="multi-worker", local_workers=2), devices)
    options = RaceOptions(seconds=0.2, kinds=(ConfigurationKind.DEVICES,), combines=False)
    found = {each.title: each for each in Race(resolved, devices, options).run()}
    workers, alone = found["this plan"], found["cpu:0, one process"]
    assert (workers.state, alone.is_measured) == (ConfigurationState.FINISHED, True), (workers.reason, alone.reason)
    assert alone.losses is not None
    assert alone.losses.difference is not None
    assert alone.losses.difference <= 1e-5
    assert alone.memory is not None
    assert workers.memory is not None
    assert workers.memory > alone.memory  # of both processes
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.campaign
def test_a_coordinator_is_asked_for_steps_a_validation_and_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path))
    plan = Plan(model="mlp", data="digits", strategy="parameter-server", local_workers=1)
    with PlanTrials([TrialStart(plan)]) as trials:
        trial = trials.trials[0]
        trial.wait_ready()
        process = trial.process
        first = process.take(2).losses
        turn = process.take_for(0.2)
        assert turn.steps == len(turn.losses) > 0
        assert process.validate()[0]["loss"] > 0
        process.save()
        process.restore()
        assert process.take(2).losses == pytest.approx(first, rel=1e-5)
        assert (trial.memory or 0.0) > 0
