"""The catalogue of datasets: names, summaries, shapes and counts, without TensorFlow.

The other modules of this package read them; only the engine process imports those.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine.data.dataset_entry import DatasetEntry, parse_size
from accel_engine.errors import PlanError
from accel_engine.text import suggestion

if TYPE_CHECKING:
    from accel_engine.data.dataset import Dataset

__all__ = ["CATALOGUE", "DatasetEntry", "find", "load", "parse_size", "survey"]

CATALOGUE: dict[str, DatasetEntry] = {
    entry.name: entry
    for entry in (
        DatasetEntry(
            "digits",
            "Handwritten digits, 8x8, built in (no download)",
            "digits",
            (8, 8, 1),
            10,
            1437,
            360,
        ),
        DatasetEntry(
            "synthetic",
            "Synthetic images of any shape, for benchmarks",
            "synthetic",
            (32, 32, 3),
            10,
            10_000,
            1_000,
        ),
        DatasetEntry("mnist", "Handwritten digits, 28x28", "keras_dataset", (28, 28, 1), 10, 60_000, 10_000),
        DatasetEntry("fashion_mnist", "Articles of clothing, 28x28", "keras_dataset", (28, 28, 1), 10, 60_000, 10_000),
        DatasetEntry("cifar10", "Colour photos of 10 classes, 32x32", "keras_dataset", (32, 32, 3), 10, 50_000, 10_000),
        DatasetEntry(
            "cifar100", "Colour photos of 100 classes, 32x32", "keras_dataset", (32, 32, 3), 100, 50_000, 10_000
        ),
    )
}
"""Datasets by name."""

_SYNTHETIC = re.compile(r"synthetic(?::(\d+(?:x\d+)*)(?::(\d+)(?::(\d+))?)?)?")


def find(spec: str) -> DatasetEntry:
    """Find the dataset of a plan's ``data``, without reading it.

    Args:
        spec: A catalogue name, ``synthetic[:SHAPE[:CLASSES[:EXAMPLES]]]``, e.g.
            ``synthetic:224x224x3:1000``, a file ``*.npz``, or a folder with a folder of images per class.

    Raises:
        PlanError: There is no such dataset, file or folder.
    """
    if not spec.strip():  # as a path it would be the current directory
        raise PlanError("data", spec, f"no dataset given; {suggestion(spec, CATALOGUE)}")
    if spec.startswith("synthetic"):
        return _synthetic(spec)
    if entry := CATALOGUE.get(spec.lower().replace("-", "_")):
        return entry
    path = Path(spec).expanduser()
    if path.suffix == ".npz":
        if not path.is_file():
            raise PlanError("data", spec, "no such file")
        return DatasetEntry(path.stem, f"Arrays in {path.name}", "npz", path=path, value_range=None)
    if path.is_dir():
        return DatasetEntry(path.resolve().name, f"Images in {path}", "image_folder", path=path)
    if "/" in spec or path.exists():
        raise PlanError("data", spec, "neither an .npz file nor a folder of images")
    raise PlanError("data", spec, f"no such dataset; {suggestion(spec, CATALOGUE)}")


def survey(entry: DatasetEntry, image_size: str | None) -> DatasetEntry:
    """Find a dataset's shape, classes and counts from the headers and names of the user's files.

    Args:
        entry: Result of :func:`find`.
        image_size: Size to which a folder's images are resized, as in a plan.

    Returns:
        The entry with its shape, classes and counts.

    Raises:
        DataError: The file or folder cannot be used.
        PlanError: ``image_size`` is given for data other than a folder of images.
    """
    from accel_engine.data import image_folder_scan, npz  # not above: listing datasets should not import NumPy

    _check_size(entry, image_size)
    if entry.reader == "npz":
        return npz.survey(entry)
    if entry.reader == "image_folder":
        return image_folder_scan.survey(entry, image_size)
    return entry


def load(spec: str, *, image_size: str | None, seed: int) -> "Dataset":
    """Read a dataset; for the engine process only, as it may import TensorFlow.

    Args:
        spec: A plan's ``data``.
        image_size: Size to which a folder's images are resized, as in a plan.
        seed: Seed of the validation split and of ``synthetic``.

    Raises:
        PlanError: There is no such dataset, or ``image_size`` is given for data other than a folder of images.
        DataError: It cannot be read, or is invalid.
    """
    entry = find(spec)
    _check_size(entry, image_size)
    dataset: Dataset = import_module(f"accel_engine.data.{entry.reader}").read(entry, image_size=image_size, seed=seed)
    return dataset


def _check_size(entry: DatasetEntry, image_size: str | None) -> None:
    if image_size is not None and entry.reader != "image_folder":
        raise PlanError("image_size", image_size, f"only for a folder of images; data is {entry.name}")


def _synthetic(spec: str) -> DatasetEntry:
    match = _SYNTHETIC.fullmatch(spec)
    default = CATALOGUE["synthetic"]
    shape = tuple(map(int, match[1].split("x"))) if match and match[1] else default.shape
    classes = int(match[2]) if match and match[2] else 10
    examples = int(match[3]) if match and match[3] else 10_000
    if not match or not shape or 0 in shape or classes < 2 or examples < 1:
        raise PlanError(
            "data", spec, "must be synthetic[:SHAPE[:CLASSES[:EXAMPLES]]], e.g. synthetic:224x224x3:1000:512"
        )
    return DatasetEntry("synthetic", default.summary, "synthetic", shape, classes, examples, max(1, examples // 10))
