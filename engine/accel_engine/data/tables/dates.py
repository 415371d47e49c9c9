"""Reads dates that are written in one of several common formats; without TensorFlow."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import ColumnFormat, Notation
from accel_engine.data.tables.category_values import encoded_column
from accel_engine.data.tables.columns import NUMBERS_SHARE, TableColumn, are_marks, spread_texts, unparsed
from accel_engine.data.tables.number_texts import read_numbers
from accel_engine.errors import DataError

ISO = "ISO 8601"
"""Dates such as ``2024-12-31``, ``2024-12-31 23:59:59`` and ``2024-12-31T23:59:59Z``."""

UNIX = {"Unix seconds": 1.0, "Unix milliseconds": 1e3, "Unix microseconds": 1e6, "Unix nanoseconds": 1e9}
"""Numbers that are dates, and how many of them a second has."""

_TIMES = ("", " %H:%M:%S", " %H:%M", " %I:%M:%S %p", " %I:%M %p")
_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y",
    "%d %b %Y", "%b %d, %Y", "%d-%b-%Y", "%d-%b-%y", "%a, %d %b %Y",
)  # fmt: skip
_FORMATS = (
    *(f"{day}{time}" for day in _DAYS for time in _TIMES),
    "%a, %d %b %Y %H:%M:%S GMT", "%Y-%m",
)  # fmt: skip
"""In the order of preference, where several fit: 01/02/2024 is 2 January."""

_DECLARED_FORMATS = ("%Y%m%d", "%Y")
"""Formats that look like numbers: only for columns that the plan declares to be dates."""

_SAMPLE = 100

_START = r"^(\d|[A-Za-z]{3,},? \d)"
"""How dates begin in all formats."""

_ISO_TEXT = (
    r"^(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[T ](?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:[.,]\d+)?))?"
    r" ?(?:Z|UTC|(?P<sign>[+-])(?P<ahead>\d\d)(?::?(?P<minutes>\d\d))?)?)?$"
)

_TIME = r"^(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:[.,]\d+)?))?$"

_LAST_DAYS = r"(?:^|[^\d:]|^\d{6})(?:29|30|31)(?:[^\d:]|$)"
"""Days that some months have not."""

_BASIC = r"^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)"
"""The basic format of ISO 8601."""


def date_column(
    name: str, cells: Any, known: ColumnFormat | None, *, is_declared: bool
) -> TableColumn | tuple[Change, ...]:
    """Read a column of dates.

    Args:
        name: Its name.
        cells: An Arrow column of texts.
        known: The training file's column; ``None`` for the training file itself.
        is_declared: Whether it is known to have dates, so that numbers are dates, too.

    Returns:
        The column; if too few texts are dates, the notes on it, which may be empty.

    Raises:
        DataError: A declared column has no dates that can be read, or a column has dates of another format than in the
            training file.
    """
    import pyarrow as pa

    valid, recorded = len(cells) - cells.null_count, known.date_format if known else ""
    if recorded not in UNIX:
        seconds, written, failed = parse_dates(cells, recorded, declared=is_declared)
        changes = unparsed(name, "dates", failed, cells, np.isnan(seconds))
        are_few = failed <= (1 - NUMBERS_SHARE) * valid
        others = cells.filter(pa.array(np.isnan(seconds))).drop_null() if written and failed and not are_few else None
        only_marks = others is not None and are_marks(others.unique())
        if written and (is_declared or are_few or only_marks) and failed < valid:
            if failed and known and not only_marks:
                _refuse_other_format(name, cells, seconds, written)
            if not recorded and (unclear := day_or_month(cells, written)):
                detail = f"such as {unclear} as {readable_format(written)}; otherwise write 2024-12-31"
                changes += (Change("read as dates", f"values of {name}", detail=detail),)
            return date_column_of(name, seconds, written, changes)
        if not is_declared and 2 * failed <= valid:
            detail = f"{changes[0].detail}; --kinds '{name}=date' reads such as missing"
            return (Change("read as categories", f"values of {name}", failed, valid, detail),)
    if not is_declared:
        return ()
    encoded = encoded_column(cells)
    values = read_numbers(encoded.texts, encoded.counts, Notation(), False, truths=False).values
    numbers = np.append(values, np.nan)[encoded.codes]
    failed = valid - int((~np.isnan(numbers)).sum())
    if failed == valid:
        if recorded and recorded not in UNIX:
            _refuse_other_format(name, cells, np.full(len(cells), np.nan), recorded)
        raise DataError(
            f"column {name} has no dates that can be read, such as {cells.drop_null()[0].as_py()[:40]!r}; write them "
            f"like {readable_format(recorded) if recorded else '2024-12-31 or 2024-12-31 23:59:59'}"
        )
    return dates_of_numbers(name, numbers, known, unparsed(name, "dates", failed, cells, np.isnan(numbers)))


def dates_of_numbers(
    name: str, numbers: npt.NDArray[np.float64], known: ColumnFormat | None, changes: tuple[Change, ...] = ()
) -> TableColumn:
    """A column of dates of numbers: 20241231, 2024, or the time since 1970."""
    import pyarrow as pa

    recorded = known.date_format if known else ""
    if recorded in UNIX:
        return date_column_of(name, numbers / UNIX[recorded], recorded, changes)
    texts = [None if np.isnan(each) else f"{each:.0f}" for each in numbers.tolist()]
    seconds, written, failed = parse_dates(pa.chunked_array([texts], "string"), recorded, declared=True)
    if not written or failed:
        written = unix_unit(numbers)
        seconds = numbers / UNIX[written]
    return date_column_of(name, seconds, written, changes)


def date_column_of(
    name: str, seconds: npt.NDArray[np.float64], written: str, changes: tuple[Change, ...] = ()
) -> TableColumn:
    """A column of dates that are read."""
    return TableColumn(name, "date", seconds, int(np.isnan(seconds).sum()), date_format=written, changes=changes)


def _refuse_other_format(name: str, cells: Any, seconds: npt.NDArray[np.float64], written: str) -> None:
    row, other = other_format(cells, seconds)
    if row >= 0:
        wanted = readable_format(written)
        also = "" if wanted == "2024-12-31" else " or 2024-12-31"
        raise DataError(
            f"column {name} has dates in another format than the training data: {cells[row].as_py()!r} in row "
            f"{row + 1:,} is {readable_format(other)}, not {wanted}; write all like {wanted}{also}"
        )


def parse_dates(cells: Any, written: str = "", *, declared: bool = False) -> tuple[npt.NDArray[np.float64], str, int]:
    """Parse an Arrow column of texts. Dates in ISO 8601, which mean one thing only, are read beside any format.

    Args:
        cells: The texts; missing ones are null.
        written: The format; by default the one that fits best is taken.
        declared: Whether the plan declares these to be dates, so that years alone are accepted.

    Returns:
        Seconds since 1970, NaN where there is no date; the format, empty if none fits; how many texts are not dates.
    """
    import pyarrow.compute as pc

    known = len(cells) - cells.null_count
    sample = spread_texts(cells.drop_null(), _SAMPLE)
    if not written and 2 * (pc.sum(pc.match_substring_regex(sample, _START)).as_py() or 0) < len(sample):
        return np.full(len(cells), np.nan), "", known  # most columns of texts, of which there may be thousands
    candidates = (written,) if written else (ISO, *_FORMATS, *(_DECLARED_FORMATS if declared else ()))
    best, best_format, fewest = np.full(len(cells), np.nan), "", known + 1
    for candidate in candidates:
        if not written and 2 * np.isnan(_parsed(sample, candidate)).sum() > len(sample):
            continue
        seconds = _parsed(cells, candidate)
        if written or np.isnan(seconds).sum() > cells.null_count:
            seconds = _completed(seconds, cells, candidate)
        failed = known - int((~np.isnan(seconds)).sum())
        if failed < fewest:
            best, best_format, fewest = seconds, candidate, failed
        if not failed:
            break
    return best, best_format, min(fewest, known)


def other_format(cells: Any, seconds: npt.NDArray[np.float64]) -> tuple[int, str]:
    """The first text that is a date in another format than its column's.

    Args:
        cells: An Arrow column of texts.
        seconds: What :func:`parse_dates` made of them.

    Returns:
        Its row and format; -1 and an empty text if there is none.
    """
    left = np.flatnonzero(np.isnan(seconds) & cells.is_valid().to_numpy())[:_SAMPLE]
    texts = cells.take(left)
    for candidate in (*_FORMATS, *_DECLARED_FORMATS) if len(left) else ():
        if (found := np.flatnonzero(~np.isnan(_parsed(texts, candidate)))).size:
            return int(left[found[0]]), candidate
    return -1, ""


def day_or_month(cells: Any, written: str) -> str:
    """A date that is another one with day and month exchanged, if all dates can be read so; else an empty text."""
    other = written.translate(str.maketrans("dm", "md"))
    if other == written or other not in _FORMATS:
        return ""
    mine, others = (_parsed(cells, each) for each in (written, other))
    differ = np.flatnonzero(np.nan_to_num(mine) != np.nan_to_num(others))
    return str(cells[int(differ[0])].as_py()) if len(differ) and (np.isnan(mine) == np.isnan(others)).all() else ""


def readable_format(written: str) -> str:
    """A format of dates as text, such as ``day/month/year``."""
    for mark, name in (("%Y", "year"), ("%y", "year"), ("%m", "month"), ("%d", "day"), ("%b", "Mon")):
        written = written.replace(mark, name)
    written = written.replace("%I:%M:%S %p", "11:59:59 PM").replace("%I:%M %p", "11:59 PM")
    return written.replace("%H:%M:%S", "23:59:59").replace("%H:%M", "23:59").replace(ISO, "2024-12-31")


def unix_unit(numbers: npt.NDArray[np.float64]) -> str:
    """The unit of :data:`UNIX` for which numbers are dates before the year 5138."""
    largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0))
    return next((unit for unit, a_second in UNIX.items() if largest <= 1e11 * a_second), "Unix nanoseconds")


def timestamps(cells: Any) -> npt.NDArray[np.float64]:
    """Seconds since 1970 of an Arrow column of dates or timestamps; NaN where one is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    zone = getattr(cells.type, "tz", None)
    microseconds = pc.cast(pc.cast(cells, pa.timestamp("us", zone), safe=False), pa.int64())
    return pc.cast(microseconds, pa.float64(), safe=False).to_numpy() / 1e6


def seconds_of(cells: Any) -> npt.NDArray[np.float64] | None:
    """Seconds of times of day or durations such as 08:30 and 1:02:03.5, NaN for others; ``None`` if many are others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for some in (spread_texts(cells.drop_null(), _SAMPLE), cells):
        found = pc.extract_regex(some, pattern=_TIME)
        if found.length() - found.null_count < NUMBERS_SHARE * (len(some) - some.null_count):
            return None
    hours, minutes, seconds = (
        pc.cast(pc.replace_substring(pc.replace_substring_regex(pc.struct_field(found, name), "^$", "0"), ",", "."),
                pa.float64())
        for name in ("hours", "minutes", "seconds")
    )  # fmt: skip
    values = pc.add(pc.add(pc.multiply(hours, 3600.0), pc.multiply(minutes, 60.0)), seconds)
    return np.array(pc.fill_null(values, np.nan))


def _completed(seconds: npt.NDArray[np.float64], cells: Any, written: str) -> npt.NDArray[np.float64]:
    """Dates with those that are written with another time of day, or in ISO 8601."""
    day = next((day for day in _DAYS if written.startswith(day)), "")
    others: Sequence[str] = [f"{day}{time}" for time in _TIMES if day and f"{day}{time}" != written]
    for other in (*others, *((ISO,) if written != ISO else ())):
        left = np.flatnonzero(np.isnan(seconds) & cells.is_valid().to_numpy())
        if not len(left):
            break
        seconds = seconds.copy()
        seconds[left] = _parsed(cells.take(left), other)
    return seconds


def _parsed(cells: Any, written: str) -> npt.NDArray[np.float64]:
    import pyarrow.compute as pc

    if written == ISO:
        return _parsed_iso(cells)
    if ".%y" in written:  # which versions such as 1.2.10 are not
        cells = pc.if_else(pc.match_substring_regex(cells, r"^\d\d\.\d\d\.\d\d\b"), cells, None)
    seconds = _days_that_exist(cells, written)
    # strptime takes the year 24 for %Y, too.
    four_digits = seconds >= np.datetime64("1000-01-01", "s").astype(np.int64)
    return np.where(four_digits, seconds, np.nan)


def _days_that_exist(cells: Any, written: str) -> npt.NDArray[np.float64]:
    """Seconds since 1970; NaN for days such as 30 February too, of which Arrow makes the first days of March."""
    import pyarrow.compute as pc

    dates = pc.strptime(cells, format=written, unit="s", error_is_null=True)
    seconds = timestamps(dates)
    first = np.flatnonzero(pc.fill_null(pc.less_equal(pc.day(dates), 3), False).to_numpy())
    texts = cells.take(first)
    for place in np.flatnonzero(pc.match_substring_regex(texts, _LAST_DAYS).to_numpy()).tolist():
        try:
            datetime.strptime(texts[place].as_py(), written)  # only whether there is such a day
        except ValueError:
            seconds[first[place]] = np.nan
    return seconds


def _parsed_iso(cells: Any) -> npt.NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):  # many times as fast, where all are of one form
        try:
            return timestamps(cells.cast(kind))
        except pa.ArrowInvalid:
            continue
    cells = pc.replace_substring_regex(cells, _BASIC, r"\1-\2-\3T\4:\5:\6")
    found = pc.extract_regex(cells, pattern=_ISO_TEXT)

    def numbers(name: str) -> npt.NDArray[np.float64]:
        texts = pc.struct_field(found, name)
        texts = pc.replace_substring(pc.if_else(pc.equal(texts, ""), "0", texts), ",", ".")
        return pc.cast(texts, pa.float64()).to_numpy()

    days = _days_that_exist(pc.struct_field(found, "day"), "%Y-%m-%d")
    ahead = 3600 * numbers("ahead") + 60 * numbers("minutes")
    is_behind = pc.fill_null(pc.equal(pc.struct_field(found, "sign"), "-"), False).to_numpy()
    of_day = 3600 * numbers("hour") + 60 * numbers("minute") + numbers("second")
    return days + of_day - np.where(is_behind, -ahead, ahead)
