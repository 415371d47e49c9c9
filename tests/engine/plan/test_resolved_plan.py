from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, PlanError, UsageError
from accel_engine.plan import Plan
from accel_engine.plan.plan_file import InvalidPlanError
from accel_engine.plan.resolved_plan import resolve, resolve_to_train

HOST = (Device("cpu:0", "cpu", "a processor"),)


def test_a_valid_plan_has_step_counts() -> None:
    laid_out = resolve_to_train(Plan(strategy="mirrored", virtual_cpus=2), HOST).step_counts

    assert laid_out is not None
    assert (laid_out.replicas, laid_out.per_replica_batch, laid_out.steps_per_epoch) == (2, 32, 23)


def test_steps_on_a_remote_tpu_are_unknown() -> None:
    assert resolve_to_train(Plan(strategy="tpu", tpu="grpc://10.0.0.2"), HOST).step_counts is None


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"model": "MobileNetV2"}, "model", "takes images of at least 32x32"),
        ({"strategy": "mirrored", "virtual_cpus": 2, "batch_size": 1}, "batch_size", "at least 2"),
        ({"strategy": "mirrored"}, "strategy", "needs two devices"),
        ({"devices": ("gpu:0",)}, "devices", "gpu:0"),
    ],
)
def test_errors_name_their_field(changes: dict[str, object], field: str, words: str) -> None:
    with pytest.raises(PlanError, match=words) as caught:
        resolve_to_train(Plan().replace(**changes), HOST)

    assert caught.value.field == field


def test_an_invalid_scale_is_rejected_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.zeros((20, 8), np.float32), y=np.arange(20) % 2)
    plan = Plan(model="mlp", data=str(path), batch_size=4)
    resolve_to_train(plan, HOST)
    with pytest.raises(PlanError, match=r"divides uint8 by 255 and uint16 by 65535, but the examples are float32"):
        resolve_to_train(plan.replace(scale="0-1"), HOST)


def test_a_broken_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "broken.npz"
    path.write_bytes(b"no archive")

    with pytest.raises(AccelError, match=r"broken\.npz"):
        resolve_to_train(Plan(data=str(path)), HOST)


def test_an_invalid_environment_is_no_error_of_the_plan() -> None:
    resolved = resolve(Plan(strategy="multi-worker"), HOST, environment={"TF_CONFIG": "{"})

    assert "TF_CONFIG is invalid" in str(resolved.errors["strategy"])
    with pytest.raises(UsageError, match=r"^TF_CONFIG is invalid"):
        resolved.check()


def test_all_that_does_not_fit_is_named_at_once() -> None:
    resolved = resolve(Plan(model="cnn", data="synthetic:100", devices=("gpu:7",)), HOST)
    with pytest.raises(InvalidPlanError) as caught:
        resolved.check()
    assert len(caught.value.errors) == 2
    assert "no device gpu:7" in str(caught.value)
    assert "data has 100" in str(caught.value)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(("field", "value"), [("target", "x"), ("window", 4), ("tokenizer", "bytes")])
def test_a_field_without_effect_on_the_data_is_refused_for_a_new_run_only(field: str, value: Any) -> None:
    plan = Plan.from_mapping({field: value})
    with pytest.raises(PlanError, match=f"{field} = .* has no effect on built-in data, such as digits"):
        resolve_to_train(plan, HOST)

    resolve_to_train(plan, HOST, chosen=())


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, arrays, a text, a folder of images and a function; also the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("day,x,y\n" + "".join(f"{row},{row},{row % 2}.5\n" for row in range(40)))
    np.savez(tmp_path / "a.npz", x=np.zeros((40, 8), np.float32), y=np.arange(40) % 2)
    (tmp_path / "mine.py").write_text("def load(): return None\n")
    return tmp_path


GPU = (*HOST, Device("gpu:0", "gpu", "NVIDIA L4"))


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"data": "a.csv", "tokenizer": "bytes"}, "tokenizer", "only for texts for language models; data is a"),
        ({"data": "a.csv", "time": "day", "horizon": 2}, "horizon", "only for windows of time series: set --window 24"),
        ({"data": "a.npz", "kinds": "x=number"}, "kinds", "only for tables; data is a"),
        ({"data": ".", "target": "y"}, "target", "only for files with columns or named arrays"),
        ({"validation_split": 0.2}, "validation_split", "has no effect on built-in data, such as digits"),
        (
            {"data": "a.csv", "validation_split": 0.2, "validation_data": "a.csv"},
            "validation_split",
            "the plan has --validation-data",
        ),
        ({"data": "a.csv", "validation_split": 0.2, "split": "none"}, "validation_split", "the plan has --split none"),
        ({"data": "synthetic", "test_split": 0.2}, "test_split", "only for data that is read; data is synthetic"),
        ({"memory_limit": 4}, "memory_limit", "only for GPUs; a CPU trains: leave it out"),
        ({"memory_growth": "off"}, "memory_growth", "only for GPUs; a CPU trains"),
    ],
)
def test_a_field_in_vain_is_refused(files: Path, changes: dict[str, Any], field: str, words: str) -> None:
    plan = Plan.from_mapping({"batch_size": 4, **changes})
    error = next(error for error in resolve(plan, HOST).plan_errors if error.field == field)

    assert words in str(error)
    assert field not in resolve(plan, HOST, chosen=()).errors


def test_virtual_cpus_beside_a_gpu_are_refused() -> None:
    plan = Plan(devices=("gpu:0",), virtual_cpus=2)
    assert "only for CPUs; a GPU trains" in str(resolve(plan, GPU).plan_errors)
    assert not resolve(plan.replace(devices=()), GPU).errors
    assert not resolve(Plan(memory_limit=4), GPU).errors


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"strategy": "central-storage", "virtual_cpus": 2, "precision": "mixed_float16", "force": "on"},
         "precision", "does not support loss scaling"),
        ({"data": "a.csv", "split": "none", "patience": 2, "monitor": "val_loss"}, "monitor", "nothing to validate"),
        ({"monitor": "learning_rate", "patience": 2}, "monitor_mode", "set --monitor-mode"),
        ({"data": "synthetic:8:3", "metrics": "top_k_categorical_accuracy"}, "metrics", "there are 3"),
        ({"schedule": "steps", "warmup": "60%", "rate_drops": "50%"}, "rate_drops", "after the warm-up of 138 steps"),
        ({"schedule": "cosine", "warmup": 0.6, "epochs": 1, "steps_per_epoch": 1}, "warmup", "below the 1 steps"),
    ],
)  # fmt: skip
def test_what_the_engine_would_refuse_is_told_before(
    files: Path, changes: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(PlanError, match=words) as caught:
        resolve_to_train(Plan.from_mapping(changes), HOST)

    assert caught.value.field == field
