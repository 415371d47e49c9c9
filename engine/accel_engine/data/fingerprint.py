"""Fingerprints of data, to notice that it has changed; without TensorFlow."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset, LazyArray, Split, spread_rows, take_rows

MAX_BYTES = 1 << 26
"""Bytes of an array in memory that count; of a larger one, evenly spaced rows."""

MAX_TEXTS = 100_000
"""Texts of an array that count."""

MAX_LAZY_ROWS = 64
"""Rows that are read of an array that is not in memory."""

NAMES = ("classes", "columns", "vocabulary")
"""Parts that give the numbers of an example their meaning."""

TRAINING, VALIDATION = "training examples", "validation examples"


def fingerprint(dataset: Dataset) -> dict[str, str]:
    """Hashes of the parts of a dataset, by what they are; without the examples of a stream."""
    parts = {
        "classes": _of_texts(dataset.class_names),
        "columns": _of_texts((*dataset.feature_names, "", *dataset.target_names)),
        "vocabulary": _of_texts(dataset.vocabulary),
    }
    scaling = dataset.target_scaling
    for name, examples in ((TRAINING, dataset.train), (VALIDATION, dataset.validation)):
        if isinstance(examples, Split):
            parts[name] = of_arrays([*examples.arrays, *([scaling.mean, scaling.scale] if scaling else [])])
    return parts


def changed_parts(dataset: Dataset, before: Mapping[str, str]) -> list[str]:
    """The parts of a dataset that differ from the ones of an earlier :func:`fingerprint`."""
    return [name for name, value in fingerprint(dataset).items() if before.get(name, value) != value]


def _of_texts(texts: Iterable[str]) -> str:
    found = blake2b(digest_size=16)
    for text in texts:
        _add_text(found, text)
    return found.hexdigest()


def of_arrays(arrays: list[npt.NDArray[Any] | LazyArray]) -> str:
    """A hash of some arrays; of large ones, of some of their rows."""
    found = blake2b(digest_size=16)
    for array in arrays:
        found.update(f"{array.dtype.kind} {tuple(array.shape)}".encode())
        some = take_rows(array, _rows(array))
        if some.dtype.kind == "O":
            for value in some.ravel().tolist():
                _add_text(found, value)
        else:
            found.update(np.ascontiguousarray(some).tobytes())
    return found.hexdigest()


def _rows(array: npt.NDArray[Any] | LazyArray) -> npt.NDArray[np.intp]:
    """The rows of an array that count."""
    limit = MAX_LAZY_ROWS
    if isinstance(array, np.ndarray):
        limit = MAX_TEXTS if array.dtype.kind == "O" else MAX_BYTES * len(array) // max(array.nbytes, 1)
    return spread_rows(len(array), max(limit, 1))


def _add_text(found: Any, value: object) -> None:
    content = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    found.update(len(content).to_bytes(8, "little") + content)
