"""A dataset as training takes it: examples, sparse labels, and what should be told of them."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import psutil

from accel_engine.data.pixel_scaling import ValueRange

HELD_SHARE = 0.25
"""Share of the host's free memory that examples may take; beyond it they are read when they are needed."""

VALIDATION_SHARE = 0.1
"""Share of the examples that is split off for validation where the data brings no split of its own."""


class Examples(Protocol):
    """Examples that are read or made when they are asked for, as a NumPy array's rows need not be."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(examples, ...)``."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """``uint8`` or ``float32``."""

    @property
    def nbytes(self) -> int:
        """Bytes that all of them take in memory."""

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """The examples of these rows, ``[len(indices), ...]``."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Examples with their labels.

    Attributes:
        x: ``[examples, ...]``, uint8 or float32, raw: not yet scaled; an array or read lazily.
        y: Sparse labels, int32 ``[examples]``, from 0 to classes - 1.
    """

    x: npt.NDArray[Any] | Examples
    y: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Everything that training needs of a dataset.

    Labels are always sparse; training gives a loss that wants them otherwise what it wants.

    Attributes:
        name: For titles.
        train: What is trained on.
        validation: What is validated on; ``None`` where there are too few examples for it.
        classes: Number of classes.
        class_names: One for each class.
        numbers: What is known of the numbers of examples. They are scaled once, if at all, in the training
            step, so that images lie and travel as bytes; see :mod:`accel_engine.data.pixel_scaling`.
        notes: What the user should be told.
    """

    name: str
    train: Split
    validation: Split | None
    classes: int
    class_names: tuple[str, ...]
    numbers: ValueRange = ValueRange()  # noqa: RUF009 (frozen)
    notes: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one example, without the batch."""
        return tuple(self.train.x.shape[1:])


def fits_in_memory(nbytes: int) -> bool:
    """Whether examples of this size should be held in the host's memory."""
    return nbytes <= HELD_SHARE * psutil.virtual_memory().available


def split_off(examples: int, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Choose by seed which examples to validate on: a tenth, at least one, but none of a single one.

    Returns:
        The rows to train on and those to validate on, both ascending.
    """
    order = np.random.default_rng(seed).permutation(examples)
    count = validation_count(examples)
    return np.sort(order[count:]), np.sort(order[:count])


def validation_count(examples: int) -> int:
    """How many of so many examples :func:`split_off` sets aside."""
    return 0 if examples < 2 else max(1, round(examples * VALIDATION_SHARE))
