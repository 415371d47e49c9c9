"""Pads lists of several lengths to one length."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.prepared.rows import fixed, numpy_type
from accel_engine.data.structure import ArraySpec


def pad_of(dtype: str) -> int | str:
    """What lists are padded with: 0, or empty text."""
    return "" if dtype == "string" else 0


def pad(values: npt.NDArray[Any], lengths: npt.NDArray[np.integer[Any]], spec: ArraySpec) -> npt.NDArray[Any]:
    """Pad lists at their ends, and cut longer ones.

    Args:
        values: The items of all lists, one list after the other, ``[sum(lengths), ...]``.
        lengths: The length of each list.
        spec: The shape and type of a padded list.

    Returns:
        The lists, ``[len(lengths), *spec.shape]``.
    """
    shape = fixed(spec)
    padded = np.full((len(lengths), *shape), pad_of(spec.dtype), numpy_type(spec))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    positions = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    kept = positions < shape[0]
    padded[rows[kept], positions[kept]] = values.reshape(-1, *shape[1:])[kept]
    return padded


def padding_note(lengths: Mapping[str, int | None], window: int | None) -> str:
    """A note on the features whose lists are padded.

    Args:
        lengths: Their lengths after padding.
        window: The plan's window.
    """
    if window is not None:
        return f"lists of several lengths are padded with 0 to the window of {window}, or cut: {', '.join(lengths)}"
    named = ", ".join(f"{name} ({length})" for name, length in lengths.items())
    return f"lists of several lengths are padded with 0 to the longest: {named}; set the window for another length"
