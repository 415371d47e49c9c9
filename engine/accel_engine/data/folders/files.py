"""Reads files in threads, each a row of an array; without TensorFlow."""

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions, Progress, is_skipped, no_progress, or_skip
from accel_engine.data.dataset import LazyRows, Split, fits_in_memory, spread_rows
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.structure import ArraySpec, Batch, map_structure
from accel_engine.errors import DataError
from accel_engine.words import numbers

T = TypeVar("T")
F = TypeVar("F", bound=Hashable)
H = TypeVar("H", bound=Hashable)

Problems: TypeAlias = dict[int, DataError]
"""Why files cannot be read, by their rows."""

LOOKED_AT = 500
"""Number of files that are looked at before all are read."""

THREADS = max(16, os.cpu_count() or 1)
"""Files read in parallel, as disks of a network take long for each."""

_GROUP, _SMALL_GROUP = 64, 4
_GROUP_BYTES, _SMALL_GROUP_BYTES = 8 << 20, 1 << 16
"""Files that a thread reads in a row at most and at least, and their bytes: handing over a file takes time as well."""

_NAMED = 3
"""Number of files that are named."""


class FileForm(ABC, Generic[F, H]):
    """How files of a kind are read: each has a header, and becomes a row."""

    shape: tuple[int, ...]
    """Shape of a row."""
    dtype: str
    """NumPy's name of its type; ``object`` for text."""
    value_range: ValueRange | None = None
    """Range of the values; ``None`` if it says nothing."""
    sample_rate = 0
    """Samples per second of sounds."""
    detail = ""
    """A description of a row; its shape and type by default."""
    looked_at = LOOKED_AT
    """Number of files that are looked at before all are read."""

    @classmethod
    @abstractmethod
    def check(cls, file: F) -> H:
        """The header of a file, which seems whole.

        Raises:
            UnreadableError: The file cannot be opened, or is damaged.
            DataError: The file can be opened, but not be used.
        """

    @abstractmethod
    def read(self, file: F) -> tuple[Any, H]:
        """The row of a file, and its header.

        Raises:
            UnreadableError: The file cannot be opened, or is damaged.
            DataError: The file can be opened, but not be used.
        """

    def changes(self, headers: Counter[H], *, is_sampled: bool = False) -> tuple[Change, ...]:
        """The changes by reading files with these headers.

        Args:
            headers: How many files have each.
            is_sampled: Whether there are other files.
        """
        return ()

    @property
    def spec(self) -> ArraySpec:
        """Shape and type of a row."""
        return ArraySpec(self.shape, "string" if self.dtype == "object" else self.dtype)


@dataclass(frozen=True, slots=True)
class FilesSeen(Generic[F, H]):
    """The headers of some files of a folder, and the files that cannot be read."""

    headers: dict[F, H]
    """The files with their headers, without those that are left out."""
    damaged: tuple[F, ...]
    """The files that cannot be read."""
    looked_at: int
    """Number of files that were looked at."""
    total: int
    """Number of all files."""

    @property
    def counts(self) -> Counter[H]:
        """How many files have each header."""
        return Counter(self.headers.values())

    @property
    def is_sampled(self) -> bool:
        """Whether there are files that were not looked at."""
        return self.looked_at < self.total

    @property
    def notes(self) -> tuple[str, ...]:
        """A note about files that a run may leave out."""
        if not self.damaged:
            return ()
        looked_at = f"{self.looked_at:,} of {self.total:,}" if self.is_sampled else f"{self.total:,}"
        left_out = "files seem damaged; those that cannot be read will be left out"
        return (f"{len(self.damaged):,} of {looked_at} {left_out}: {listed_files(self.damaged)}",)


def look_at(
    files: Sequence[F], check: Callable[[F], H], options: DataOptions, limit: int = LOOKED_AT
) -> FilesSeen[F, H]:
    """Check some files that are spread evenly.

    Args:
        files: Their paths.
        check: Returns the header of a file.
        options: Whether files that cannot be read are skipped.
        limit: Number of files at most.

    Raises:
        DataError: A file cannot be read, unless such files are skipped; or none can.
    """
    rows = spread_rows(len(files), limit).tolist()
    headers: dict[F, H] = {}
    problems: dict[F, DataError] = {}
    for file, found in read_in_threads(check, [files[row] for row in rows], _GROUP, options):
        if isinstance(found, DataError):
            problems[file] = found
        else:
            headers[file] = found
    if not headers:
        raise DataError(f"not one of {len(rows):,} files can be read: {next(iter(problems.values()))}")
    return FilesSeen(headers, tuple(problems), len(rows), len(files))


@dataclass(eq=False)
class FileArray(LazyRows, Generic[F, H]):
    """A lazy array with a row for each file."""

    files: Sequence[F]
    form: FileForm[F, H]
    """How they are read."""
    seen: Counter[H] = field(default_factory=Counter)
    """How many of the files that were read or checked have each header."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(files, ...)``."""
        return (len(self.files), *self.form.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the rows; ``object`` for text."""
        return np.dtype(self.form.dtype)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of all rows in memory; of text, the bytes of the files."""
        return sum(_size(str(file)) for file in self.files) if self.dtype.hasobject else super().nbytes

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
        """Read the files at ``rows``.

        Raises:
            DataError: A file cannot be read.
        """
        taken = self.select(rows)
        values = np.empty(taken.shape, self.dtype)
        for _, found in read_in_threads(partial(taken.read_into, values), range(len(taken)), taken.group, None):
            if isinstance(found, DataError):
                raise found
        return values

    def read_all(self, options: DataOptions, progress: Progress = no_progress) -> tuple[npt.NDArray[Any], Problems]:
        """Read all files.

        Args:
            options: Whether files that cannot be read are skipped.
            progress: Reports the number of files read.

        Returns:
            All rows, and why some could not be read.

        Raises:
            DataError: A file cannot be read, and is not skipped.
        """
        values = np.empty(self.shape, self.dtype)
        return values, self._problems(partial(self.read_into, values), options, progress)

    def check_all(self, options: DataOptions, progress: Progress = no_progress) -> Problems:
        """Why some files cannot be read: all are read if those are to be skipped, and otherwise checked.

        Args:
            options: Whether files that cannot be read are skipped.
            progress: Reports the number of files checked.

        Raises:
            DataError: A file cannot be read, and is not skipped.
        """
        read_all = options.invalid_examples == "skip"

        def check(row: int) -> H:
            return self.form.read(self.files[row])[1] if read_all else self.form.check(self.files[row])

        return self._problems(check, options, progress)

    def read_through(self, progress: Progress = no_progress) -> None:
        """Read all files for what reading them tells.

        Raises:
            DataError: A file cannot be read.
        """
        self._problems(lambda row: self.form.read(self.files[row])[1], DataOptions(invalid_examples="fail"), progress)

    def select(self, rows: npt.NDArray[Any]) -> "FileArray[F, H]":
        """The array of the files at ``rows``, or of those that a mask selects."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows  # of a batch, without a copy of all files
        return FileArray([self.files[place] for place in places.tolist()], self.form)

    @property
    def group(self) -> int:
        """Number of files that a thread reads in a row."""
        row_bytes = max(1, self.nbytes // max(1, len(self)))
        least = max(1, min(_SMALL_GROUP, _SMALL_GROUP_BYTES // row_bytes))
        return max(least, min(_GROUP, len(self) // THREADS, _GROUP_BYTES // row_bytes))

    def read_into(self, values: npt.NDArray[Any], row: int) -> H:
        """Read a file into a row of an array."""
        values[row], header = self.form.read(self.files[row])
        return header

    def _problems(self, read: Callable[[int], H], options: DataOptions, progress: Progress) -> Problems:
        problems: Problems = {}
        for row, found in read_in_threads(read, range(len(self)), self.group, options):
            if isinstance(found, DataError):
                problems[row] = found
            else:
                self.seen[found] += 1
            if not (row + 1) % _GROUP or row + 1 == len(self):
                progress(row + 1, len(self))
        return problems


def read_splits(
    splits: Mapping[str, Split], options: DataOptions, progress: Progress
) -> tuple[dict[str, Split], list[str]]:
    """Read the files of splits into memory if all of them fit; otherwise they stay lazy.

    Args:
        splits: The training split and the others; their arrays are file arrays or arrays in memory.
        options: Whether files that cannot be read are skipped.
        progress: Reports the number of files read.

    Returns:
        The splits without the examples that are skipped, and warnings about these.

    Raises:
        DataError: A file cannot be read, and the plan does not skip it; or not one training example can be read, or
            fewer than half of all unless the plan says to skip.
    """
    in_memory = fits_in_memory(sum(split.nbytes for split in splits.values()))
    arrays = [array for split in splits.values() for array in split.arrays if isinstance(array, FileArray)]
    done = 0
    damaged: dict[object, DataError] = {}
    read: dict[int, Any] = {}
    for array in arrays:

        def report(count: int, _: int, before: int = done) -> None:
            progress(before + count, sum(map(len, arrays)))

        values, problems = array.read_all(options, report) if in_memory else (array, array.check_all(options, report))
        done += len(array)
        damaged |= {array.files[row]: problem for row, problem in problems.items()}
        read[id(array)] = values, problems
    result = {use: _without_damaged(split, read) for use, split in splits.items()}
    if not len(result["train"]):
        count = len(splits["train"])
        raise DataError(f"not one of {count} training examples can be read: {next(iter(damaged.values()))}")
    total, left = (sum(map(len, each.values())) for each in (splits, result))
    if left == total:
        return result, []
    said = f"{total - left} of {total} examples that cannot be read"
    if options.invalid_examples == "auto" and 2 * left < total:
        raise or_skip(DataError(f"{said} are more than half: {next(iter(damaged.values()))}"))
    some = {use: split for use, split in result.items() if len(split)}
    return some, [f"skipped {said}: {listed_files(list(damaged))}"]


def listed_files(files: Sequence[object]) -> str:
    """The names of the first of some files, each with its folder."""
    return numbers.listed(("/".join(Path(str(file)).parts[-2:]) for file in files), _NAMED)


def _without_damaged(split: Split, read: dict[int, tuple[Any, Problems]]) -> Split:
    """A split with what was read of its arrays, without the rows with a problem."""
    rows = {row for array in split.arrays for row in read.get(id(array), (None, ()))[1]}
    valid = np.ones(len(split), np.bool_)
    valid[list(rows)] = False

    def kept(array: Any) -> Any:
        values = read.get(id(array), (array, ()))[0]
        if not rows:
            return values
        return values.select(valid) if isinstance(values, FileArray) else values[valid]

    batch: Batch = map_structure(kept, split.batch)
    return Split(*batch, None if split.file_of is None else split.file_of[valid])


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "files")


def read_in_threads(
    read: Callable[[T], H], items: Sequence[T], group: int, options: DataOptions | None
) -> Iterator[tuple[T, H | DataError]]:
    """Call a function for items in threads; yields each item with its result or its error, in their order.

    Args:
        read: The function.
        items: The items.
        group: Number of items that a thread takes in a row.
        options: Whether items with an error are skipped; all of them by default.

    Raises:
        DataError: The function raises an error that is not to be skipped.
    """
    groups = [items[first : first + group] for first in range(0, len(items), group)]
    for part in _pool().map(partial(_attempts, read), groups):
        for item, found in part:
            if options and isinstance(found, DataError) and not is_skipped(found, options):
                raise or_skip(found) from found
            yield item, found


def _attempts(read: Callable[[T], H], items: Sequence[T]) -> list[tuple[T, H | DataError]]:
    return [(item, _attempt(read, item)) for item in items]


def _attempt(read: Callable[[T], H], item: T) -> H | DataError:
    try:
        return read(item)
    except DataError as error:
        return error


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:  # reading it tells why
        return 0
