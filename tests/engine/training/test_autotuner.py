from pathlib import Path

import numpy as np
import pytest

from accel_engine.events import XlaTried
from accel_engine.plan import Plan
from accel_engine.training import autotuner
from accel_engine.training.core import device_visibility
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop

from .conftest import RANDOM, Gym

PLAN = Plan(model="mlp", epochs=2, batch_size=256, last_batch="drop", validation="off")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the trial as early and as briefly as possible."""
    monkeypatch.setattr(autotuner, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(autotuner, "WORTHWHILE_SECONDS", 0.0)
    monkeypatch.setattr(autotuner, "WORTHWHILE_STEPS", 0)
    monkeypatch.setattr(autotuner, "TRIAL_SECONDS", 0.01)


def found(monkeypatch: pytest.MonkeyPatch, *, compiled: float) -> None:
    """Replace the rates that a trial measures."""
    measure = Loop.measure_rate

    def rate(self: Loop, segment: Segment, seconds: float) -> float:
        measure(self, segment, seconds)
        return compiled if self.mode.xla else 100.0

    monkeypatch.setattr(Loop, "measure_rate", rate)


@pytest.mark.parametrize(
    ("model", "precision"), [("build", "float32"), ("unseeded", "float32"), ("mlp", "mixed_float16")]
)
def test_a_trial_does_not_change_the_run(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, random_model: str, model: str, precision: str
) -> None:
    found(monkeypatch, compiled=50.0)
    own = random_model.replace(":build", f":{model}")
    plan = PLAN.replace(model=model if model == "mlp" else own, precision=precision)
    plan = plan.replace(augmentation=("light", "mixup")) if model == "mlp" else plan

    tried = gym.train(plan)

    event = tried.only(XlaTried)
    assert (event.xla, event.plain, event.compiled, event.remembered) == (False, 100.0, 50.0, False)
    assert 0 < event.step < tried.ended.steps
    np.testing.assert_array_equal(tried.series["loss"], gym.train_once(plan.replace(xla="off")).series["loss"])


def test_the_faster_mode_is_used_and_cached(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, compiled=200.0)

    first, second = gym.train(PLAN), gym.train(PLAN)

    assert (first.only(XlaTried).xla, first.only(XlaTried).remembered) == (True, False)
    assert (second.only(XlaTried).xla, second.only(XlaTried).remembered) == (True, True)
    assert second.only(XlaTried).step == 0
    plain = gym.train_once(PLAN.replace(xla="off"))
    for trained in (first, second):
        np.testing.assert_allclose(trained.series["loss"], plain.series["loss"], atol=1e-5)
    assert plain.all(XlaTried) == []


def test_batch_processor_and_version_are_part_of_the_cache_key(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, compiled=200.0)
    gym.train(PLAN)

    assert not gym.train(PLAN.replace(batch_size=128)).only(XlaTried).remembered
    monkeypatch.setattr(autotuner, "processors", lambda: 1000)
    assert not gym.train(PLAN).only(XlaTried).remembered
    monkeypatch.setattr(device_visibility, "hardware_names", lambda *_: ("another processor",))
    assert not gym.train(PLAN).only(XlaTried).remembered
    monkeypatch.setattr(autotuner, "__version__", "another version")
    assert not gym.train(PLAN).only(XlaTried).remembered


def test_a_trial_measures_real_rates(gym: Gym) -> None:
    event = gym.train(PLAN).only(XlaTried)

    assert event.plain > 0
    assert event.compiled > 0
    assert event.xla == (event.compiled > event.plain)


def test_steps_that_xla_cannot_compile_stay_uncompiled(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotuner, "alternative_mode", lambda *_: ExecutionMode(xla=True))

    trained = gym.train(PLAN.replace(strategy="mirrored", virtual_cpus=2))

    assert (trained.only(XlaTried).xla, trained.only(XlaTried).compiled) == (False, 0.0)
    assert trained.ended.steps == 10


def test_a_trial_works_after_the_model_file_is_deleted(
    gym: Gym, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "model.py"
    path.write_text(RANDOM)
    measure = Loop.measure_rate

    def rate(self: Loop, segment: Segment, seconds: float) -> float:
        path.unlink(missing_ok=True)
        return measure(self, segment, seconds)

    monkeypatch.setattr(Loop, "measure_rate", rate)

    assert gym.train(PLAN.replace(model=f"{path}:build")).only(XlaTried).step


@pytest.mark.parametrize(
    "changes", [{"model": "cnn", "epochs": 1}, {"strategy": "mirrored", "virtual_cpus": 2}, {"xla": "off"}]
)
def test_no_trial_where_it_is_not_worthwhile(gym: Gym, changes: dict[str, object]) -> None:
    assert gym.train(PLAN.replace(**changes)).all(XlaTried) == []


@pytest.mark.parametrize("unit", ["SECONDS", "STEPS"])
def test_no_trial_in_a_short_run(gym: Gym, monkeypatch: pytest.MonkeyPatch, unit: str) -> None:
    monkeypatch.setattr(autotuner, f"WORTHWHILE_{unit}", 10**9)

    assert gym.train(PLAN).all(XlaTried) == []
