import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine import data
from accel_engine.data import dataset as dataset_module
from accel_engine.data.data_options import DataOptions
from accel_engine.data.pixel_scaling import PIXELS
from accel_engine.errors import DataError, PlanError


def test_digits_are_the_1797_real_ones() -> None:
    dataset = data.load("digits", DataOptions())
    entry = data.CATALOGUE["digits"]
    assert dataset.validation is not None
    assert (len(dataset.train), len(dataset.validation)) == (entry.examples, entry.validation_examples) == (1437, 360)
    assert (dataset.shape, dataset.classes) == (entry.shape, entry.classes)
    pixels = np.concatenate([dataset.train.inputs, dataset.validation.inputs])
    assert (pixels.dtype, pixels.min(), pixels.max()) == (np.uint8, 0, 255)
    assert len(np.unique(pixels)) == 17
    # Sums over the source's shades, 0 to 16, and its labels.
    assert int(np.rint(pixels / 255 * 16).sum()) == 561_718
    assert int(dataset.train.targets.sum() + dataset.validation.targets.sum()) == 8_070
    assert dataset.notes == ()


def test_digits_are_split_alike_for_every_seed() -> None:
    one, other = (data.load("digits", DataOptions(seed=seed)) for seed in (0, 1))
    assert one.validation is not None
    assert other.validation is not None
    np.testing.assert_array_equal(one.validation.inputs, other.validation.inputs)
    assert np.bincount(one.validation.targets).min() > 20


@pytest.mark.parametrize(
    ("spec", "shape", "classes", "examples"),
    [
        ("synthetic:7x5x2:3:40", (7, 5, 2), 3, 40),
        ("synthetic:12:2:5", (12,), 2, 5),
        ("synthetic:1x1x1:4:1", (1, 1, 1), 4, 1),
    ],
)
def test_synthetic_is_what_was_asked_for(spec: str, shape: tuple[int, ...], classes: int, examples: int) -> None:
    dataset = data.load(spec, DataOptions())
    entry = data.find(spec)
    assert dataset.validation is not None
    assert (dataset.shape, dataset.classes, len(dataset.train)) == (shape, classes, examples)
    assert len(dataset.validation) == entry.validation_examples
    assert dataset.train.inputs.dtype == np.uint8
    assert dataset.train.targets.max() < classes


def test_synthetic_depends_on_the_seed_alone() -> None:
    one, again, other = (data.load("synthetic:8x8x1:3:50", DataOptions(seed=seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.train.inputs, again.train.inputs)
    np.testing.assert_array_equal(one.train.targets, again.train.targets)
    assert not np.array_equal(one.train.inputs, other.train.inputs)


def test_synthetic_that_does_not_fit_in_memory_is_made_as_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    held = data.load("synthetic:8x6x1:3:50", DataOptions())
    monkeypatch.setattr(dataset_module, "MEMORY_SHARE", 0.0)
    lazy = data.load("synthetic:8x6x1:3:50", DataOptions())
    assert not isinstance(lazy.train.inputs, np.ndarray)
    assert (lazy.train.inputs.shape, len(lazy.train.inputs), lazy.train.inputs.nbytes) == ((50, 8, 6, 1), 50, 50 * 48)
    rows = np.array([49, 3, 3])
    np.testing.assert_array_equal(lazy.train.inputs.take(rows), held.train.inputs[rows])  # type: ignore[index]
    np.testing.assert_array_equal(lazy.train.targets, held.train.targets)


def test_synthetic_classes_can_be_told_apart() -> None:
    dataset = data.load("synthetic:16x16x1:5:300", DataOptions())
    assert dataset.validation is not None
    flat, tried = (
        np.asarray(split.inputs).reshape(len(split), -1) * 1.0 for split in (dataset.train, dataset.validation)
    )
    means = np.stack([flat[dataset.train.targets == label].mean(axis=0) for label in range(5)])
    nearest = np.square(tried[:, None] - means).sum(axis=2).argmin(axis=1)
    assert np.mean(nearest == dataset.validation.targets) > 0.8


def offline(*_: Any, **__: Any) -> str:
    print("Downloading data from somewhere")  # noqa: T201 (as Keras does)
    raise Exception("URL fetch failure on somewhere: None -- Name or service not known")  # noqa: TRY002 (as Keras does)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "cifar100"])
def test_offline_without_a_cached_file(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = getattr(keras.datasets, name)
    monkeypatch.setitem(source.load_data.__globals__, "get_file", offline)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    with pytest.raises(DataError) as caught:
        data.load(name, DataOptions())
    assert f"{name} is not in the cache {tmp_path / 'datasets'}" in str(caught.value)
    assert "digits or synthetic, which need no download" in str(caught.value)
    assert "Name or service not known" in str(caught.value)
    assert capsys.readouterr().out == ""


def test_cached_file_that_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mnist.npz").write_bytes(b"half of it")
    monkeypatch.setitem(
        keras.datasets.mnist.load_data.__globals__, "get_file", lambda *_, **__: str(tmp_path / "mnist.npz")
    )
    with pytest.raises(DataError, match=r"mnist in the cache .*; delete it there"):
        data.load("mnist", DataOptions())


def test_cached_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    splits = [(rng.integers(0, 256, (n, 32, 32, 3)).astype(np.uint8), np.arange(n)[:, None] % 10) for n in (30, 20)]
    monkeypatch.setattr(keras.datasets.cifar10, "load_data", lambda: splits)
    dataset = data.load("cifar10", DataOptions())
    assert dataset.validation is not None
    assert (len(dataset.train), len(dataset.validation), dataset.value_range) == (30, 20, PIXELS)
    assert (dataset.shape, dataset.classes) == (data.CATALOGUE["cifar10"].shape, 10)
    assert dataset.class_names[3] == "cat"
    np.testing.assert_array_equal(dataset.train.targets, np.arange(30) % 10)


def test_size_is_for_folders_of_images() -> None:
    with pytest.raises(PlanError, match="only for a folder of images"):
        data.load("digits", DataOptions(image_size="32x32"))


def test_catalogue_and_survey_import_nothing_heavy(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x=np.zeros((20, 3)), y=np.arange(20) % 2)
    code = (
        "import sys; from accel_engine import data, models; from accel_engine.data import DataOptions; "
        "assert 'numpy' not in sys.modules; "
        f"data.survey(data.find({str(tmp_path / 'mine.npz')!r}), DataOptions()); "
        "assert not {'tensorflow', 'keras'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
