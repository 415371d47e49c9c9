"""Errors of augmentation and fine-tuning, before TensorFlow starts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.devices.device_types import Device
from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.plan.augmentation import augmentations_of
from accel_engine.plan.resolved_plan import resolve, resolve_to_train

HOST = (Device("cpu:0", "cpu", "a processor"),)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, float images, a saved model and Python files; also the current one."""
    (tmp_path / "table.csv").write_text("a,b,y\n" + "1,2,x\n3,4,z\n" * 10)
    labels = np.arange(20) % 2
    np.savez(tmp_path / "floats.npz", x=np.zeros((20, 8, 8, 3), np.float32), y=labels)
    np.savez(tmp_path / "alpha.npz", x=np.zeros((20, 32, 32, 4), np.uint8), y=labels)
    weights = np.ones(20, np.float32)
    np.savez(tmp_path / "weighted.npz", x=np.zeros((20, 8, 8, 3), np.uint8), y=labels, sample_weight=weights)
    (tmp_path / "mine.keras").write_bytes(b"not looked at")
    (tmp_path / "layers.py").write_text("class Scale: pass\n")
    (tmp_path / "broken.py").write_text("class Scale\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"augmentation": "flip", "model": "mlp", "data": "table.csv"}, "augmentation", "the data is table"),
        ({"augmentation": "flip", "model": "mlp", "data": "synthetic:8"}, "augmentation", "images"),
        ({"augmentation": "color", "data": "floats.npz"}, "augmentation", "store the images as uint8"),
        ({"augmentation": "strong", "data": "alpha.npz"}, "augmentation", "1 or 3 channels; the data has 4"),
        ({"augmentation": "mixup,cutmix"}, "augmentation", "choose one of them"),
        ({"augmentation": "strong,mixup"}, "augmentation", "strong contains cutmix"),
        (
            {"augmentation": "mixup", "class_weight": "0=2"},
            "augmentation",
            "weights cannot be mixed: leave out --class-weight or mixup",
        ),
        ({"augmentation": "flip", "task": "sequence", "model": "mine.keras"}, "augmentation", "the task is sequence"),
        ({"augmentation": "cutmix", "task": "segmentation", "model": "mine.keras"}, "augmentation", "cutmix is for"),
        (
            {"augmentation": "crop", "strategy": "tpu", "tpu": "grpc://10.0.0.2"},
            "augmentation",
            "XLA, which has no crop",
        ),
        (
            {"augmentation": "flip", "strategy": "central-storage", "virtual_cpus": 2},
            "augmentation",
            "--strategy mirrored",
        ),
        ({"initial_weights": "none.weights.h5"}, "initial_weights", "no such file"),
        ({"model": "cnn", "initial_weights": "imagenet"}, "initial_weights", "such as --model MobileNetV2"),
        (
            {"initial_weights": "imagenet", "model": "MobileNetV2", "data": "alpha.npz"},
            "initial_weights",
            "1 or 3 channels",
        ),
        (
            {"initial_weights": "imagenet", "model": "MobileNetV2", "data": "synthetic:32x32x3", "scale": "0-1"},
            "scale",
            "scales pixels itself",
        ),
        ({"custom_objects": "layers.py"}, "custom_objects", "only for a model in a FILE.keras"),
        ({"unsafe_load": "on"}, "unsafe_load", "only for a model in a FILE.keras"),
        ({"custom_objects": "none.py", "model": "mine.keras"}, "custom_objects", "no such file"),
        ({"custom_objects": "mine.keras", "model": "mine.keras"}, "custom_objects", "must be a Python file"),
        ({"custom_objects": "broken.py", "model": "mine.keras"}, "custom_objects", "not valid Python.* in line 1"),
        ({"custom_objects": "empty.py", "model": "mine.keras"}, "custom_objects", "defines no class"),
        ({"freeze": "dense", "unfreeze_epoch": 20}, "unfreeze_epoch", "one of the 10 epochs"),
    ],
)
def test_what_does_not_fit_is_refused(files: Path, changes: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(PlanError, match=words) as caught:
        resolve_to_train(Plan().replace(**{"batch_size": 4, **changes}), HOST)

    assert caught.value.field == field


def test_weights_of_examples_cannot_be_mixed(files: Path) -> None:
    plan = Plan(data="weighted.npz", batch_size=4)
    resolve_to_train(plan.replace(augmentation="flip,rotation"), HOST)
    with pytest.raises(PlanError, match="weights cannot be mixed"):
        resolve_to_train(plan.replace(augmentation="mixup"), HOST)


def test_what_fits_has_no_errors(files: Path) -> None:
    resolve_to_train(Plan(augmentation="strong,erasing,vertical-flip"), HOST)
    resolve_to_train(Plan(model="mine.keras", custom_objects="layers.py", unsafe_load="on"), HOST)
    plan = Plan(initial_weights="imagenet", model="MobileNetV2", data="synthetic:32x32x1", freeze="all-but-head")
    assert not resolve(plan).errors


def test_paths_become_absolute(files: Path) -> None:
    plan = Plan(model="mine.keras", custom_objects="layers.py", initial_weights="mine.keras").absolute()

    assert plan.custom_objects == str(files / "layers.py")
    assert plan.initial_weights == str(files / "mine.keras")


def test_strong_mixes_labels_only_where_there_are_any() -> None:
    assert augmentations_of(["strong"], "classification") == ("flip", "crop", "randaugment", "cutmix")
    assert augmentations_of(["strong"], "segmentation") == ("flip", "crop", "randaugment")
    assert augmentations_of(["erasing", "light", "flip"], "regression") == ("flip", "crop", "erasing")
