"""Generates learnable synthetic examples of any shape, for benchmarks.

Every class has a prototype of coarse blocks. An example mixes its class' prototype, a fainter one of a random
class, and noise, so that learning takes some steps and its curves look realistic.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset, LazyRows, Split, fits_in_memory
from accel_engine.data.pixel_scaling import PIXELS
from accel_engine.data.source import DatasetEntry

BLOCKS = 4
"""Blocks of a prototype along each side."""

NOISES = 64
"""Number of noise images, which examples share."""

_OWN, _OTHER, _NOISE = 96, 64, 96
"""Weights, of 256, of an example's class, the other class and noise."""

_BATCH_VALUES = 1 << 22
"""Values generated at a time."""


class SyntheticExamples(LazyRows):
    """Examples that are generated lazily from their row numbers.

    Args:
        prototypes: uint8 ``[classes, blocks, ...]``.
        noises: uint8 ``[noises, ...]``, in the shape of an example.
        labels: Class of each example, int32 ``[examples]``.
        rng: Chooses the other class and the noise of each example.
    """

    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        prototypes: npt.NDArray[np.uint8],
        noises: npt.NDArray[np.uint8],
        labels: npt.NDArray[np.int32],
        rng: np.random.Generator,
    ) -> None:
        self.shape = (len(labels), *noises.shape[1:])
        self._prototypes, self._noises = prototypes, noises
        self._own = labels
        self._other = rng.integers(0, len(prototypes), len(labels))
        self._noise = rng.integers(0, len(noises), len(labels))
        # The index of the block of each element of an example, along every side.
        blocks = zip(noises.shape[1:], prototypes.shape[1:], strict=True)
        self._blocks = np.ix_(*(np.arange(side) * count // side for side, count in blocks))

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint8]:
        """Generate the examples at ``indices``."""
        made = np.empty((len(indices), *self.shape[1:]), np.uint8)
        step = max(1, _BATCH_VALUES // int(np.prod(self.shape[1:])))
        for first in range(0, len(indices), step):
            made[first : first + step] = self._make(indices[first : first + step])
        return made

    def _make(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint8]:
        # The weights add up to 256, so 16-bit sums cannot overflow.
        coarse = self._prototypes[self._own[rows]].astype(np.uint16) * _OWN
        coarse += self._prototypes[self._other[rows]].astype(np.uint16) * _OTHER
        fine = self._noises[self._noise[rows]].astype(np.uint16) * _NOISE
        fine += coarse[(slice(None), *self._blocks)]
        return (fine >> 8).astype(np.uint8)


def make(entry: DatasetEntry, seed: int) -> Dataset:
    """Generate a dataset; in memory if it fits, lazily otherwise.

    Args:
        entry: Its shape, and the numbers of classes and examples.
        seed: What the examples depend on.
    """
    shape, classes = entry.shape or (), entry.classes or 0
    rng = np.random.default_rng(seed)
    prototypes = rng.integers(0, 256, (classes, *(min(BLOCKS, side) for side in shape)), np.uint8)
    noises = rng.integers(0, 256, (NOISES, *shape), np.uint8)

    def split(examples: int) -> Split:
        labels = rng.permutation(np.arange(examples, dtype=np.int32) % classes)
        lazy = SyntheticExamples(prototypes, noises, labels, rng)
        return Split(lazy.take(np.arange(examples)) if fits_in_memory(lazy.nbytes) else lazy, labels)

    return Dataset(
        entry.name,
        split(entry.examples or 0),
        split(entry.validation_examples or 0),
        class_names=tuple(map(str, range(classes))),
        task="classification",
        kind="images",
        value_range=PIXELS,
    )
