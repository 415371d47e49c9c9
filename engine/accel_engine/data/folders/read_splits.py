"""Reads the files of all splits into memory, if they fit there, and leaves out those that cannot be read."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, Progress, is_skipped, or_skip
from accel_engine.data.dataset import Split, fits_in_memory
from accel_engine.data.folders.file_array import FileArray
from accel_engine.data.folders.file_check import listed_files
from accel_engine.data.structure import flatten, map_structure
from accel_engine.errors import DataError


def read_splits(
    splits: Sequence[Split | None], options: DataOptions, progress: Progress
) -> tuple[list[Split | None], list[str]]:
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
    present = [split for split in splits if split is not None]
    in_memory = fits_in_memory(sum(split.nbytes for split in present))
    total = sum(len(array) for split in present for array in split.arrays if isinstance(array, FileArray))
    done = 0
    automatic, skip = options.invalid_examples == "auto", options.invalid_examples == "skip"
    damaged: list[str] = []
    problems: list[DataError] = []
    skipped = 0

    def report(count: int, _: int) -> None:
        progress(done + count, total)

    def read(split: Split) -> Split:
        nonlocal done, skipped
        valid = np.ones(len(split), np.bool_)
        arrays: dict[int, npt.NDArray[Any] | FileArray] = {}
        for array in flatten(split.batch):
            arrays[id(array)] = array
            if not isinstance(array, FileArray):
                continue
            if in_memory:
                try:
                    arrays[id(array)], own = array.read_all(report, skip=automatic or skip)
                except DataError as error:
                    raise or_skip(error) from error
            else:
                own = array.find_valid(report, decode_all=skip)
            done += len(array)
            rows = np.flatnonzero(~own)
            damaged.extend(array.files[row] for row in rows.tolist())
            for row in rows if automatic else rows[:1]:
                problem = array.problem(int(row))
                if not is_skipped(problem, options):
                    raise or_skip(problem)
                problems.append(problem)
            valid = valid & own
        skipped += int((~valid).sum())
        if not valid.any() and split is splits[0]:
            raise DataError(f"not one of {len(split)} training examples can be read: {problems[0]}")

        def kept(array: npt.NDArray[Any] | FileArray) -> npt.NDArray[Any] | FileArray:
            found = arrays[id(array)]
            if valid.all():
                return found
            return found.select(valid) if isinstance(found, FileArray) else found[valid]

        return Split(*map_structure(kept, split.batch))

    result = [read(split) if split is not None else None for split in splits]
    result = [split or None for split in result]
    if not skipped:
        return result, []
    said = f"{skipped} of {sum(map(len, present))} examples that cannot be read"
    if automatic and 2 * skipped > sum(map(len, present)):
        raise or_skip(DataError(f"{said} are more than half: {problems[0]}"))
    return result, [f"skipped {said}: {listed_files(damaged)}"]
