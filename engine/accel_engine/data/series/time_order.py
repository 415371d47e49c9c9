"""Checks the times of time series, and describes steps that are not regular."""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.errors import DataError, FieldValue, join_words

_TOLERANCE = 0.1
"""Relative difference from the usual step up to which a step is regular, as that of months of 28 to 31 days."""

_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


def check_times(values: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Check a column of times, and convert texts with dates.

    Args:
        values: Dates, numbers, or texts with dates in ISO 8601, ``[rows]``.
        name: The column's name.

    Returns:
        ``datetime64`` or numbers, ``[rows]``.

    Raises:
        DataError: A value is missing, or is neither a date nor a number.
    """
    if values.dtype.kind not in "Mbuif":
        try:
            values = values.astype("datetime64[us]")
        except (ValueError, TypeError) as error:
            texts = f"column {name!r} has values such as {str(values[0])!r}, which are not dates in ISO 8601"
            remedy = (
                "; if the rows are in order, replace ",
                FieldValue("time", name),
                " by ",
                FieldValue("ignore", name),
            )
            raise DataError(join_words((texts, *remedy))) from error
    missing = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if missing.any():
        first = int(np.argmax(missing)) + 1
        raise DataError(f"column {name!r} has no time in {missing.sum():,} rows, first in row {first:,}")
    return values


def describe_steps(times: npt.NDArray[Any], follows: npt.NDArray[np.bool_], name: str) -> tuple[str, ...]:
    """A note on steps of time that differ from the usual one, if there are any.

    Args:
        times: Result of :func:`check_times`, in order, ``[rows]``.
        follows: Whether each row but the first is of the same series as the one before, ``[rows - 1]``.
        name: The column's name.
    """
    dates = times.dtype.kind == "M"
    # Numbers are subtracted as float64, as unsigned ones and bool have no negative differences.
    steps = np.diff(times) / np.timedelta64(1, "s") if dates else np.diff(times.astype(np.float64))
    steps = steps[follows & (steps > 0)]
    usual = float(np.median(steps)) if len(steps) else 0.0
    odd = steps[np.abs(steps - usual) > _TOLERANCE * usual]
    if not len(odd):
        return ()
    typical, least, most = (_duration(value) if dates else f"{value:g}" for value in (usual, odd.min(), odd.max()))
    count = f"{len(odd):,} of {len(steps):,} steps of {name!r} differ from the usual {typical} ({least} to {most})"
    return (f"{count}; windows count rows, whatever the steps",)


def _duration(seconds: float) -> str:
    """Such as ``10 min`` or ``1.5 d``."""
    unit, size = next((each for each in _UNITS if seconds >= each[1]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"
