"""Reads text files from a folder per class."""

from pathlib import Path
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.folders.class_dataset import read_classes
from accel_engine.data.folders.text_folder_scan import scan_text_folder
from accel_engine.errors import DataError, UnreadableError
from accel_engine.files import regular


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read a folder of text files in UTF-8: strings ``[n]``.

    Args:
        entry: Has the folder's path.
        options: How validation files are chosen, and whether invalid files are skipped.
        progress: Reports the number of files read.

    Raises:
        DataError: The folder does not have a folder of text files per class, or a file cannot be read.
    """
    return read_classes(
        entry,
        scan_text_folder(entry, options),
        options,
        progress,
        decode=_text_tensor,
        shape=(),
        dtype=object,
        explain=_explain,
        convert=_to_text,
    )


def _text_tensor(path: tf.Tensor) -> tf.Tensor:
    """Read a file in a graph; an op that fails checks its encoding."""
    return tf.strings.unicode_transcode(tf.io.read_file(path), "UTF-8", "UTF-8", errors="strict")


def _to_text(contents: npt.NDArray[Any]) -> list[str]:
    return [content.decode() for content in contents]


def _explain(path: str) -> None:
    """Raise the reason why a file cannot be read."""
    try:
        regular(Path(path)).read_bytes().decode()
    except OSError as error:
        raise UnreadableError(f"cannot read the text {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError(
            f"the text {path} is not UTF-8: line {line} has an invalid byte (position {error.start})"
        ) from error
