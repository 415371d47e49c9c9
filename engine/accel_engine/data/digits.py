"""The 1,797 handwritten digits that scikit-learn includes, too: 8x8 pixels with 17 shades of grey.

Test set of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (1998), UCI Machine
Learning Repository, https://doi.org/10.24432/C50P49, licensed under Creative Commons Attribution 4.0
(CC BY 4.0). ``digits.npz`` holds them unchanged: ``images``, uint8 ``[1797, 8, 8]`` from 0 to 16, and
``labels``, uint8 ``[1797]``.
"""

from importlib.resources import files

import numpy as np

from accel_engine.data.arrays import make_dataset
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.structure import Batch

TRAIN = 1437
"""Size of the training split; the other 360 are for validation."""

_SHADES = np.rint(np.arange(17) * 255 / 16).astype(np.uint8)
"""The byte of each shade: 0 to 255, the usual range of images."""


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read the digits; the split does not depend on the seed, so that results are comparable across seeds."""
    del progress
    with files("accel_engine.data").joinpath("digits.npz").open("rb") as file, np.load(file) as arrays:
        images, labels = _SHADES[arrays["images"]][..., np.newaxis], arrays["labels"]
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = np.sort(order[:TRAIN]), np.sort(order[TRAIN:])
    parts = {"train": Batch(images[train], labels[train]), "validation": Batch(images[test], labels[test])}
    return make_dataset(entry.name, parts, options, images=True)
