"""Data for ``advice.py``: digits, and small sets that code makes; healthy, or with a fault put into them."""

import pydoc_data.topics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import accel_engine.data

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


def digits() -> Arrays:
    """Handwritten digits, float32 8x8x1 in [0, 1]: 1,437 to train, 360 to validate."""
    with np.load(Path(accel_engine.data.__file__).with_name("digits.npz")) as file:
        x, y = file["images"], file["labels"]
    order = np.random.default_rng(0).permutation(len(x))
    x, y = (x[..., np.newaxis] / 16).astype(np.float32)[order], y[order].astype(np.int64)
    return {"x_train": x[:1437], "y_train": y[:1437], "x_val": x[1437:], "y_val": y[1437:]}


def table(rows: int = 2000, seed: int = 1, classes: int = 3) -> Arrays:
    """Ten numbers of which a random network makes one of some classes, with some noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 10)).astype(np.float32)
    hidden = np.tanh(x @ rng.normal(size=(10, 12)))
    y = np.argmax(hidden @ rng.normal(size=(12, classes)) + 0.3 * rng.normal(size=(rows, classes)), axis=1)
    return _split(x, y.astype(np.int64))


def numbers(rows: int = 2000, seed: int = 2) -> Arrays:
    """Friedman's first regression: ten numbers in [0, 1] and one to predict, standardised."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, 10)).astype(np.float32)
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y = y + rng.normal(size=rows)
    return _split(x, ((y - y.mean()) / y.std()).astype(np.float32))


def spirals(rows: int = 1200, seed: int = 3) -> Arrays:
    """Two spirals in the plane."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    angle = np.sqrt(rng.random(rows)) * 3 * np.pi
    turn = angle + np.pi * y
    x = np.stack([np.cos(turn) * angle, np.sin(turn) * angle], axis=1) / 10 + rng.normal(0, 0.02, (rows, 2))
    return _split(x.astype(np.float32), y.astype(np.int64))


def labels_of_many(rows: int = 2000, seed: int = 4) -> Arrays:
    """Twenty numbers and five labels, any number of which an example has."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 20)).astype(np.float32)
    y = (x @ rng.normal(size=(20, 5)) + rng.normal(size=(rows, 5)) > 1).astype(np.float32)
    return _split(x, y)


def rare(rows: int = 4000, seed: int = 5, share: float = 0.03, overlap: float = 1.4) -> Arrays:
    """Two classes of which one is rare, and overlaps with the other."""
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < share).astype(np.int64)
    x = rng.normal(size=(rows, 8)).astype(np.float32)
    x[:, :2] += overlap * y[:, np.newaxis]
    return _split(x, y)


def circles(rows: int = 300, seed: int = 6) -> Arrays:
    """Noisy images 32x32x1 of a disc, and a mask of it."""
    rng = np.random.default_rng(seed)
    grid = np.mgrid[:32, :32].transpose(1, 2, 0)
    centres, radii = rng.uniform(8, 24, (rows, 1, 1, 2)), rng.uniform(4, 8, (rows, 1, 1))
    masks = np.linalg.norm(grid - centres, axis=-1) < radii
    x = masks * 0.5 + rng.normal(0.25, 0.15, masks.shape)
    return _split(x[..., np.newaxis].astype(np.float32), masks.astype(np.int64))


def words(rows: int = 2000, seed: int = 7) -> Arrays:
    """Sequences of 20 tokens of 200, with a class that some tokens tell."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, rows)
    x = rng.integers(1, 200, (rows, 20))
    telling = rng.random((rows, 20)) < 0.15
    x[telling] = (y[:, np.newaxis] * 10 + 1 + rng.integers(0, 10, (rows, 20)))[telling]
    return _split(x.astype(np.int32), y.astype(np.int64))


def series(rows: int = 2500, seed: int = 8) -> Arrays:
    """Windows of 24 values of two seasons with noise, and the value after them."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    values = np.sin(t / 4) + 0.5 * np.sin(t / 29) + 0.1 * rng.normal(size=rows)
    x = np.lib.stride_tricks.sliding_window_view(values, 24)[:-1, :, np.newaxis].astype(np.float32)
    return _split(np.ascontiguousarray(x), values[24:, np.newaxis].astype(np.float32))


def text(path: Path, size: int = 120_000) -> None:
    """Write a part of Python's reference, as it shows it for ``help``."""
    path.write_text("\n".join(pydoc_data.topics.topics.values())[:size])


def _split(x: Array, y: Array, share: float = 0.2) -> Arrays:
    first = int(len(x) * (1 - share))
    return {"x_train": x[:first], "y_train": y[:first], "x_val": x[first:], "y_val": y[first:]}


Change = Callable[[Arrays], Arrays]


def noisy_labels(share: float, *, validation: bool = True) -> Change:
    """Replace a share of the labels by random ones, of training or of both splits."""

    def change(arrays: Arrays) -> Arrays:
        rng, found = np.random.default_rng(10), dict(arrays)
        for name in ("y_train", "y_val") if validation else ("y_train",):
            y = found[name].copy()
            chosen = rng.random(len(y)) < share
            y[chosen] = rng.integers(0, y.max() + 1, chosen.sum())
            found[name] = y
        return found

    return change


def shuffled_labels(arrays: Arrays) -> Arrays:
    """Shuffle all targets of both splits, so that they have nothing to do with inputs."""
    rng = np.random.default_rng(11)
    return {**arrays, **{name: rng.permutation(arrays[name]) for name in ("y_train", "y_val")}}


def few(count: int) -> Change:
    """Keep the first training examples."""
    return lambda arrays: {**arrays, "x_train": arrays["x_train"][:count], "y_train": arrays["y_train"][:count]}


def leaked(share: float) -> Change:
    """Put some of the validation examples among the training examples."""

    def change(arrays: Arrays) -> Arrays:
        count = int(share * len(arrays["x_val"]))
        return {
            **arrays,
            **{
                f"{name}_train": np.concatenate([arrays[f"{name}_train"], arrays[f"{name}_val"][:count]])
                for name in "xy"
            },
        }

    return change


def repeated(times: int) -> Change:
    """Have every second training example several times."""

    def change(arrays: Arrays) -> Arrays:
        names = ("x_train", "y_train")
        return {**arrays, **{name: np.concatenate([arrays[name], *[arrays[name][::2]] * times]) for name in names}}

    return change


def scaled(factor: float, shift: float = 0.0, *, only: str = "") -> Change:
    """Multiply inputs, of one split if ``only`` names it."""

    def change(arrays: Arrays) -> Arrays:
        names = [f"x_{only}"] if only else ["x_train", "x_val"]
        return {**arrays, **{name: (arrays[name] * factor + shift).astype(np.float32) for name in names}}

    return change


def uneven(arrays: Arrays) -> Arrays:
    """Multiply each feature of a table by another power of ten, as units differ."""
    powers = 10.0 ** np.linspace(-2, 4, arrays["x_train"].shape[1])
    return {**arrays, **{name: (arrays[name] * powers).astype(np.float32) for name in ("x_train", "x_val")}}


def sorted_by_class(arrays: Arrays) -> Arrays:
    """Sort the training examples by class."""
    order = np.argsort(arrays["y_train"], kind="stable")
    return {**arrays, **{name: arrays[name][order] for name in ("x_train", "y_train")}}


def constant_inputs(arrays: Arrays) -> Arrays:
    """Make all inputs alike."""
    return {**arrays, **{name: np.full_like(arrays[name], 0.5) for name in ("x_train", "x_val")}}


def other_classes(arrays: Arrays) -> Arrays:
    """Train mostly with the first classes, and validate mostly with the last ones, as after a split of sorted data."""
    x, y = (np.concatenate([arrays[f"{name}_train"], arrays[f"{name}_val"]]) for name in "xy")
    order = np.argsort(y + np.random.default_rng(12).exponential(1.5, len(y)), kind="stable")
    return _split(x[order], y[order])


def large_targets(arrays: Arrays) -> Arrays:
    """Give the numbers to predict a large unit."""
    return {**arrays, **{name: arrays[name] * 3000 + 50_000 for name in ("y_train", "y_val")}}
