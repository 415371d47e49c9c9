"""Looks at the batch of a step: which values are not finite or extreme, in which rows; and keeps it for a look."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset, Split, spread_rows
from accel_engine.data.structure import Batch, named_leaves
from accel_engine.files import replacing
from accel_engine.text import printable
from accel_engine.words import numbers

EXTREME = 1e4
"""A value is extreme if it is more than this many times the largest value of other examples."""

ALWAYS_EXTREME = 1e15
"""Absolute values that are extreme in any data: their squares and sums overflow float32."""

REFERENCE_ROWS = 4096
"""Other examples that a batch is compared with; of files, which have to be read, :data:`REFERENCE_FILES`."""

REFERENCE_FILES = 256

MAX_BYTES = 64 << 20
"""Bytes of the examples in a file that is kept."""

Rows = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class BatchAtFault:
    """The batch of a step."""

    step: int
    """Counted from 0."""
    batch: Batch
    """Its raw examples, NumPy arrays ``[examples, ...]``."""
    rows: Rows | None
    """Their rows in the training examples, ``[examples]``; ``None`` for a stream."""
    wrong: npt.NDArray[np.bool_]
    """Which examples have values that are not finite or extreme, bool ``[examples]``."""
    text: str
    """Their faults, for the user; empty without any."""

    def named(self, dataset: Dataset) -> str:
        """Its examples, for the user: those at fault, if there are any."""
        places = np.flatnonzero(self.wrong) if self.wrong.any() else np.arange(len(self.wrong))
        if self.rows is None:
            return f"examples {numbers.listed(map(str, places))} of the batch of step {self.step:,}"
        files = _files(dataset)
        names = [files[row] if files else str(row) for row in self.rows[places].tolist()]
        return f"{'files' if files else 'training examples'} {numbers.listed(names)}"

    def save(self, directory: Path) -> str:
        """Keep its examples in a run's directory, those at fault first; returns the name of the file."""
        order = np.argsort(~self.wrong, kind="stable")
        sized = [_plain(leaf) for _, leaf in named_leaves(self.batch)]
        each = max(1, sum(array.nbytes for array in sized) // max(1, len(order)))
        order = order[: max(1, MAX_BYTES // each)]
        arrays: dict[str, Any] = {_key(name): _plain(leaf)[order] for name, leaf in self._leaves()}
        if self.rows is not None:
            arrays["rows"] = self.rows[order]
        name = f"not-a-number-step-{self.step}.npz"
        with replacing(directory / name) as unfinished:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                np.savez(file, **arrays)
        return name

    def _leaves(self) -> Iterator[tuple[str, Any]]:
        for part, structure in zip(Batch._fields, self.batch, strict=True):
            yield from named_leaves(structure, part)


def describe_batch(step: int, batch: Batch, rows: Rows | None, dataset: Dataset) -> BatchAtFault:
    """Look for values that are not finite or extreme in the inputs, targets and weights of a step.

    Args:
        step: Counted from 0.
        batch: Its raw examples, NumPy arrays ``[examples, ...]``.
        rows: Their rows in the training examples, ``[examples]``; ``None`` for a stream.
        dataset: The data.
    """
    reference = _reference(dataset, rows)
    wrong: npt.NDArray[np.bool_] = np.zeros(len(next(iter(named_leaves(batch)))[1]), np.bool_)
    texts = []
    for part, structure, others in zip(Batch._fields, batch, reference, strict=True):
        other = dict(named_leaves(others, part))
        for name, array in named_leaves(structure, part):
            if array.dtype.kind != "f":
                continue
            for adjective, values in (
                ("not finite", ~np.isfinite(array)),
                ("extreme", _extreme(array, other.get(name))),
            ):
                if values.any():
                    wrong |= values.reshape(len(array), -1).any(axis=1)
                    texts.append(f"{name} {adjective}{_places(name, values, dataset)}")
                    break
    return BatchAtFault(step, batch, rows, wrong, printable("; ".join(texts)))


def _extreme(array: npt.NDArray[Any], reference: npt.NDArray[Any] | None) -> npt.NDArray[np.bool_]:
    """Which values are extreme; of a matrix, each column is compared with itself."""
    sizes = np.abs(array.astype(np.float64))
    limits: Any = ALWAYS_EXTREME
    if reference is not None and len(reference):
        axis = 0 if array.ndim == 2 else None
        known = np.abs(reference.astype(np.float64))
        usual = np.where(np.isfinite(known), known, 0.0).max(axis=axis)
        limits = np.where(usual > 0, np.minimum(EXTREME * usual, ALWAYS_EXTREME), ALWAYS_EXTREME)
    return sizes > limits


def _reference(dataset: Dataset, rows: Rows | None) -> Batch:
    """Other training examples, evenly spaced; none of a stream."""
    train = dataset.train
    if rows is None or not isinstance(train, Split):
        return Batch(None)
    most = REFERENCE_ROWS if train.in_memory else REFERENCE_FILES
    return train.take(np.setdiff1d(spread_rows(len(train), most), rows))


def _places(name: str, values: npt.NDArray[np.bool_], dataset: Dataset) -> str:
    """The columns of some values of a matrix, or the number and the first position of others; empty for a vector."""
    count = f", {int(values.sum()):,} values"
    if values.ndim == 1:
        return ""
    if values.ndim == 2:
        names = dataset.feature_names if name.startswith("inputs") else dataset.target_names
        columns = np.flatnonzero(values.any(axis=0)).tolist()
        shown = [names[each] if len(names) == values.shape[1] else str(each) for each in columns]
        return f" in column {numbers.listed(shown)}"
    first = np.argwhere(values)[0][1:].tolist()
    return f"{count}, first at {'pixel ' if dataset.kind == 'images' else ''}{', '.join(map(str, first))}"


def _files(dataset: Dataset) -> Any:
    """The names of the files of the training examples; ``None`` where they are not files."""
    train = dataset.train
    arrays = train.arrays if isinstance(train, Split) else []
    return next((array.files for array in arrays if hasattr(array, "files")), None)


def _plain(array: Any) -> npt.NDArray[Any]:
    """An array that a file without Python objects can hold: texts have a fixed width."""
    plain = np.asarray(array)
    return np.array([str(each) for each in plain.reshape(-1)]).reshape(plain.shape) if plain.dtype.hasobject else plain


def _key(name: str) -> str:
    return name.replace("/", "_")
