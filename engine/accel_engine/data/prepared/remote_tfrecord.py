"""Reads TFRecord files in Google Cloud Storage, with the description of their features beside them.

TensorFlow's own file system reads them. This was tested with another file system of TensorFlow, not with Google Cloud
Storage itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset, fits_in_memory
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.prepared.feature_description import NAME, FeatureDescription, parse_description
from accel_engine.data.prepared.records import by_split
from accel_engine.data.prepared.split_names import choose_splits
from accel_engine.data.prepared.tfrecord import LoadedRecords, build_records, op_message
from accel_engine.data.prepared.tfrecord_survey import check_description, how_to_describe, lay_out
from accel_engine.errors import DataError, PlanError
from accel_engine.words import numbers

_SCHEMES = "://"

_DENIED = (
    tf.errors.PermissionDeniedError,
    tf.errors.UnauthenticatedError,
    tf.errors.FailedPreconditionError,
    tf.errors.AbortedError,
    tf.errors.UnavailableError,
)
"""Errors that TensorFlow raises without credentials, or without access to the network."""


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read the records into memory.

    Args:
        entry: Has the address of a file, or of a folder with files whose names begin with their split.
        options: Which features are inputs and targets, the size of images, how examples are split, and whether invalid
            ones are skipped.
        progress: Reports the number of records read.

    Raises:
        DataError: TensorFlow cannot read the address; the description is missing, or does not fit; the records do not
            fit in memory, or one is damaged.
        PlanError: An option does not fit.
    """
    root = entry.url.rstrip("/")
    scheme = root.partition(_SCHEMES)[0]
    if scheme not in tf.io.gfile.get_registered_schemes():
        raise DataError(f"this build of TensorFlow does not read {scheme}://: copy the files to this machine")
    found = _files(root)
    splits = choose_splits(found, options)
    files = {use: found[name] for use, name in splits.by_use.items()}
    if options.validation_data:
        if not options.validation_data.startswith(f"{scheme}{_SCHEMES}"):
            raise PlanError("validation_data", options.validation_data, f"must be in {scheme}:// too, as the data is")
        files["validation"] = _files(options.validation_data.rstrip("/"))["train"]
    every = [file for each in files.values() for file in each]
    description = _description(root, files["train"][0])
    _check_size(root, every)
    layout = lay_out(description, options, notes=splits.notes)
    records = {}
    for use, each in files.items():
        with _explained(root):
            records[use] = LoadedRecords(each, description.compression)
    return build_records(entry, layout, records, options, progress)


def _files(root: str) -> dict[str, list[str]]:
    """The addresses of the files of each split, by name."""
    with _explained(root):
        if not tf.io.gfile.isdir(root):
            tf.io.gfile.stat(root)  # raises if there is none
            return {"train": [root]}
        names = sorted(name.rstrip("/") for name in tf.io.gfile.listdir(root))
    return by_split({name: f"{root}/{name}" for name in names if ".tfrecord" in name}, root)


def _description(root: str, file: str) -> FeatureDescription:
    """The description beside a file, or in a folder."""
    folder, _, name = file.rpartition("/")
    places = (
        [f"{folder}/{NAME}"] if folder == root else [f"{folder}/{name.partition('.')[0]}.{NAME}", f"{folder}/{NAME}"]
    )
    with _explained(root):
        place = next((place for place in places if tf.io.gfile.exists(place)), None)
        if place is None:
            raise DataError(how_to_describe(root, places[-1], _first_record(file, "")))
        with tf.io.gfile.GFile(place, "rb") as opened:
            content = opened.read()
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{place} is not UTF-8") from error
    description = parse_description(text, place)
    with _explained(root):
        check_description(description, _first_record(file, description.compression), file, place)
    return description


def _first_record(file: str, compression: str) -> bytes:
    records = tf.data.TFRecordDataset([file], compression).take(1).as_numpy_iterator()
    return bytes(next(iter(records), b""))


def _check_size(root: str, files: list[str]) -> None:
    with _explained(root):
        size = sum(tf.io.gfile.stat(file).length for file in files)
    if not fits_in_memory(size):
        raise DataError(
            f"{root} has {numbers.size(size)}, too much for this machine's memory: copy the files to this machine, "
            "where each record is read when it is needed"
        )


@contextmanager
def _explained(root: str) -> Iterator[None]:
    """Convert TensorFlow's errors about files."""
    try:
        yield
    except tf.errors.NotFoundError as error:
        raise DataError(f"there is no {root}, or you may not read it") from error
    except _DENIED as error:
        raise DataError(
            f"cannot read {root}: {op_message(error)}. For Google Cloud Storage, log in with gcloud auth "
            "application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"
        ) from error
    except tf.errors.OpError as error:
        raise DataError(f"cannot read {root}: {op_message(error)}") from error
