"""Reads a folder of files by class into a dataset."""

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.folders.class_folder import ClassFiles, ClassFolder
from accel_engine.data.folders.file_array import FileArray
from accel_engine.data.folders.file_check import Check
from accel_engine.data.folders.read_splits import read_splits
from accel_engine.data.parallel_decoder import Decode, ParallelDecoder
from accel_engine.files import regular


def read_classes(
    entry: DatasetEntry,
    folder: ClassFolder,
    options: DataOptions,
    progress: Progress,
    *,
    decode: Decode,
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
    explain: Callable[[str], object],
    convert: Callable[[npt.NDArray[Any]], Any] = lambda decoded: decoded,
    check: Check = regular,
    **attributes: Any,
) -> Dataset:
    """Read the files of a folder.

    Args:
        entry: The dataset's entry.
        folder: Its files.
        options: Whether files that cannot be read are skipped.
        progress: Reports the number of files read.
        decode: Decodes the path of a file in a graph.
        shape: Shape of a decoded file.
        dtype: Its type; ``object`` for text.
        explain: Raises a ``DataError`` with the reason why a file cannot be decoded.
        convert: Converts decoded files, ``[files, ...]``, to rows.
        check: Checks a file before it is first decoded.
        attributes: Further attributes of the dataset.

    Raises:
        DataError: A file cannot be read.
    """
    decoder = ParallelDecoder(decode)

    def lazy(part: ClassFiles | None) -> Split | None:
        if part is None:
            return None
        return Split(FileArray(part.files, decoder, shape, dtype, explain, convert, check), part.labels)

    splits, warnings = read_splits([lazy(part) for part in folder.splits], options, progress)
    train, validation, test = splits
    assert train is not None  # noqa: S101 (a folder has training files)
    return Dataset(
        entry.name,
        train,
        validation,
        test,
        class_names=folder.class_names,
        task="classification",
        kind=entry.kind,
        notes=folder.notes,
        warnings=tuple(warnings),
        **attributes,
    )
