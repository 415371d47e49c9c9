import json
import math
import os
from pathlib import Path

import pytest

from accel_engine import clock
from accel_engine.devices.device_types import Device, Inventory
from accel_engine.measure import cache
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.autotuning.run_threads import forget_rate, load_rates, rates_key, save_rate

PLAN = Plan(model="fashion-cnn")


def key(plan: Plan = PLAN, processor: str = "a processor") -> str:
    return rates_key(resolve(plan), Inventory((Device("cpu:0", "cpu", processor),)))


def test_rates_are_remembered_by_kind_of_run_and_number_of_threads() -> None:
    save_rate(key(), 1, 128.0)
    save_rate(key(), 2, 99.0)
    save_rate(key(PLAN.replace(batch_size=128)), 2, 50.0)

    assert load_rates(key()) == {1: 128.0, 2: 99.0}
    forget_rate(key(), 1)
    assert load_rates(key()) == {2: 99.0}
    assert load_rates(key(PLAN.replace(batch_size=128))) == {2: 50.0}


def test_a_rate_is_forgotten_after_a_week(monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now()
    monkeypatch.setattr(cache.clock, "now", lambda: now)
    save_rate(key(), 2, 99.0)
    monkeypatch.setattr(cache.clock, "now", lambda: now + cache.MAX_AGE_SECONDS - 1)
    save_rate(key(), 1, 128.0)
    assert load_rates(key()) == {1: 128.0, 2: 99.0}

    monkeypatch.setattr(cache.clock, "now", lambda: now + cache.MAX_AGE_SECONDS)
    assert load_rates(key()) == {1: 128.0}
    monkeypatch.setattr(cache.clock, "now", lambda: now - 1)  # the clock was wrong, then or now
    assert load_rates(key()) == {}


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        1,
        [1],
        {"value": 5.0},
        {"value": None, "measured_at": 0.0},
        {"value": 0.0, "measured_at": 0.0},
        {"value": "fast", "measured_at": 0.0},
        {"value": 5.0, "measured_at": "today"},
        {"value": math.nan, "measured_at": 0.0},
        {"value": math.inf, "measured_at": 0.0},
    ],
)
def test_a_damaged_memory_is_ignored(damaged: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.clock, "now", lambda: 1.0)
    path = Path(os.environ["ACCEL_TUI_HOME"]) / "threads.json"
    path.parent.mkdir(exist_ok=True, parents=True)
    right = {"value": 5.0, "measured_at": 0.0}
    path.write_text(json.dumps({f"1 {key()}": damaged, f"one {key()}": right, key(): right}))
    assert load_rates(key()) == {}

    save_rate(key(), 2, 99.0)
    assert load_rates(key()) == {2: 99.0}


def test_a_file_that_is_no_json_is_ignored() -> None:
    save_rate(key(), 2, 99.0)
    (Path(os.environ["ACCEL_TUI_HOME"]) / "threads.json").write_text("{")
    assert load_rates(key()) == {}


def test_a_disturbed_rate_does_not_replace_a_higher_one() -> None:
    save_rate(key(), 2, 100.0)
    save_rate(key(), 2, 60.0)  # other programs
    assert load_rates(key()) == {2: 100.0}

    save_rate(key(), 2, 95.0)  # noise
    assert load_rates(key()) == {2: 95.0}
    save_rate(key(), 2, 120.0)
    assert load_rates(key()) == {2: 120.0}


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "mlp"},
        {"data": "synthetic:28x28x1:10:2000"},
        {"batch_size": 128},
        {"precision": "mixed_bfloat16"},
        {"optimizer": "sgd"},
        {"micro_batches": 2},
        {"xla": "off"},
        {"layer_kernels": "off"},
        {"augmentation": ("flip",)},
        {"strategy": "mirrored", "virtual_cpus": 2},
    ],
)
def test_what_a_step_computes_is_part_of_the_key(changes: dict[str, object]) -> None:
    assert key(PLAN.replace(**changes)) != key()


@pytest.mark.parametrize(
    "changes",
    [
        {"threads": 1},
        {"name": "another"},
        {"epochs": 3},
        {"seed": 7},
        {"learning_rate": 0.1},
        {"validation": "off"},
        {"checkpoint_every": "5 epochs"},
    ],
)
def test_what_happens_between_steps_is_not(changes: dict[str, object]) -> None:
    assert key(PLAN.replace(**changes)) == key()


def test_machine_versions_and_environment_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys = [key(), key(processor="another processor")]
    monkeypatch.setattr(cache, "processors", lambda: 1000)
    keys.append(key())
    monkeypatch.setattr(cache, "__version__", "another version")
    keys.append(key())
    for name in ("TF_NUM_INTEROP_THREADS", "XLA_FLAGS", "TF_XLA_FLAGS"):
        monkeypatch.setenv(name, "1")
        keys.append(key())
    driver = tmp_path / "version"
    monkeypatch.setattr(cache, "_DRIVER", driver)
    for version in ("NVRM version: 580.1", "NVRM version: 590.2"):
        driver.write_text(f"{version}\nGCC version: 13")
        keys.append(key())
    model = tmp_path / "model.py"
    for modified in (1, 2):
        model.write_text("def build(input_shape, classes): ...")
        os.utime(model, (modified, modified))
        keys.append(key(PLAN.replace(model=f"{model}:build")))
    assert len(set(keys)) == len(keys)
