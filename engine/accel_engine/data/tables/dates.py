"""Reads dates that are written in one of several common formats; without TensorFlow."""

from typing import Any

import numpy as np
import numpy.typing as npt

ISO = "ISO 8601"
"""Dates such as ``2024-12-31``, ``2024-12-31 23:59:59`` and ``2024-12-31T23:59:59Z``."""

_FORMATS = (
    *(f"{date}{time}" for date in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y")
      for time in ("", " %H:%M:%S", " %H:%M")),
    "%m/%d/%y", "%d/%m/%y", "%d %b %Y", "%b %d, %Y", "%d-%b-%Y", "%Y-%m",
)  # fmt: skip
"""In the order of preference, where several fit: 01/02/2024 is 2 January."""

_DECLARED_FORMATS = ("%Y%m%d", "%Y")
"""Formats that look like numbers: only for columns that the plan declares to be dates."""

_SAMPLE = 100


def parse_dates(cells: Any, written: str = "", *, declared: bool = False) -> tuple[npt.NDArray[np.float64], str, int]:
    """Parse an Arrow column of texts.

    Args:
        cells: The texts; missing ones are null.
        written: The format; by default the one that fits best is taken.
        declared: Whether the plan declares these to be dates, so that years alone are accepted.

    Returns:
        Seconds since 1970, NaN where there is no date; the format, empty if none fits; how many texts are no dates.
    """
    known = len(cells) - cells.null_count
    sample = cells.drop_null().slice(0, _SAMPLE)
    candidates = (written,) if written else (ISO, *_FORMATS, *(_DECLARED_FORMATS if declared else ()))
    best, best_format, fewest = np.full(len(cells), np.nan), "", known + 1
    for candidate in candidates:
        if not written and 2 * np.isnan(_parsed(sample, candidate)).sum() > len(sample):
            continue
        seconds = _parsed(cells, candidate)
        failed = known - int((~np.isnan(seconds)).sum())
        if failed < fewest:
            best, best_format, fewest = seconds, candidate, failed
        if not failed:
            break
    return best, best_format, min(fewest, known)


def timestamps(cells: Any) -> npt.NDArray[np.float64]:
    """Seconds since 1970 of an Arrow column of dates or timestamps; NaN where one is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    zone = getattr(cells.type, "tz", None)
    microseconds = pc.cast(pc.cast(cells, pa.timestamp("us", zone), safe=False), pa.int64())
    seconds: npt.NDArray[np.float64] = pc.cast(microseconds, pa.float64(), safe=False).to_numpy() / 1e6
    return seconds


def _parsed(cells: Any, written: str) -> npt.NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if written != ISO:
        dates = pc.strptime(cells, format=written, unit="s", error_is_null=True)
        seconds = timestamps(dates)
        # strptime takes the year 24 for %Y, too.
        four_digits = seconds >= np.datetime64("1000-01-01", "s").astype(np.int64)
        return np.where(four_digits, seconds, np.nan)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return timestamps(cells.cast(kind))
        except pa.ArrowInvalid:
            continue
    return np.full(len(cells), np.nan)
