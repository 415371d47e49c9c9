"""A dataset for training: examples, sparse labels, and notes for the user."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import psutil

from accel_engine.data.pixel_scaling import ValueRange

MEMORY_SHARE = 0.25
"""Share of the host's free memory up to which examples are loaded into memory; otherwise they are read lazily."""

VALIDATION_SHARE = 0.1
"""Share of the examples in the validation split, if the data has no validation split."""


class Examples(Protocol):
    """Examples that are read or generated lazily."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(examples, ...)``."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """``uint8`` or ``float32``."""

    @property
    def nbytes(self) -> int:
        """Bytes of all examples in memory."""

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """Read the examples at ``indices``, ``[len(indices), ...]``."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Examples with their labels.

    Attributes:
        x: ``[examples, ...]``, uint8 or float32, not scaled; an array or lazy.
        y: Sparse labels, int32 ``[examples]``, from 0 to classes - 1.
    """

    x: npt.NDArray[Any] | Examples
    y: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A dataset for training.

    Labels are always sparse; training encodes them as the loss requires.

    Attributes:
        name: For titles.
        train: The training split.
        validation: The validation split; ``None`` if there are too few examples.
        classes: Number of classes.
        class_names: One per class.
        value_range: Value range of the examples. They are scaled, if at all, in the training step, so that images
            are stored and transferred as bytes; see :mod:`accel_engine.data.pixel_scaling`.
        notes: Notes for the user.
    """

    name: str
    train: Split
    validation: Split | None
    classes: int
    class_names: tuple[str, ...]
    value_range: ValueRange = ValueRange()  # noqa: RUF009 (frozen)
    notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one example, without the batch."""
        return tuple(self.train.x.shape[1:])


def fits_in_memory(nbytes: int) -> bool:
    """Whether to load examples of this size into the host's memory."""
    return nbytes <= MEMORY_SHARE * psutil.virtual_memory().available


def split_rows(examples: int, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Choose a random validation split of :func:`validation_count` examples.

    Returns:
        The rows of the training and of the validation split, both ascending.
    """
    order = np.random.default_rng(seed).permutation(examples)
    count = validation_count(examples)
    return np.sort(order[count:]), np.sort(order[:count])


def validation_count(examples: int) -> int:
    """Size of the validation split: a tenth, at least 1; 0 for a single example."""
    return 0 if examples < 2 else max(1, round(examples * VALIDATION_SHARE))
