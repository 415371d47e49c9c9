"""Reads TFRecord files whose features are described beside them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.folders.image_folder import ImageDecoder
from accel_engine.data.prepared.columns_dataset import PreparedSplits, build_dataset
from accel_engine.data.prepared.feature_description import Feature, FeatureDescription
from accel_engine.data.prepared.record_layout import RecordLayout
from accel_engine.data.prepared.records import RecordFiles
from accel_engine.data.prepared.rows import Rows, numpy_type
from accel_engine.data.prepared.tfrecord_survey import read_layout
from accel_engine.data.structure import ArraySpec
from accel_engine.data.untuned import untuned
from accel_engine.errors import DataError
from accel_engine.memory import available_memory
from accel_engine.words import numbers


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read TFRecord files: into memory if they fit; otherwise each record when it is needed.

    Args:
        entry: Has the path of a file, or of a folder with files whose names begin with their split.
        options: Which features are inputs and targets, the size of images, how examples are split, and whether invalid
            ones are skipped.
        progress: Reports the number of records read.

    Raises:
        DataError: The description is missing, or does not fit; or a record is damaged.
        PlanError: An option does not fit.
    """
    return read_records(entry, read_layout(entry, options), options, progress)


def read_records(entry: DatasetEntry, layout: RecordLayout, options: DataOptions, progress: Progress) -> Dataset:
    """Read files whose features are known, as :func:`read` does."""
    compression = layout.description.compression
    records: dict[str, Records] = {
        split: LoadedRecords(list(map(str, paths)), compression) if compression else RecordFiles(paths)
        for split, paths in layout.paths.items()
        if paths
    }
    return build_records(entry, layout, records, options, progress)


def build_records(
    entry: DatasetEntry,
    layout: RecordLayout,
    records: Mapping[str, "Records"],
    options: DataOptions,
    progress: Progress,
) -> Dataset:
    """Make a dataset of the records of each split."""
    decoders = {
        name: ImageDecoder(feature.shape, "uint16" if feature.dtype == "uint16" else "uint8")
        for name, feature in layout.description.features.items()
        if feature.encoding == "image"
    }
    sources = {split: RecordSource(each, layout.description, decoders) for split, each in records.items()}
    return build_dataset(
        replace(entry, name=layout.name or entry.name),
        PreparedSplits(sources["train"], sources.get("validation"), sources.get("test")),
        layout.roles,
        options,
        progress,
        class_names=layout.description.class_names,
        images=layout.images,
        notes=layout.notes,
    )


class Records(Protocol):
    """Records that are read by row."""

    def __len__(self) -> int: ...

    def get(self, rows: Rows) -> list[bytes]:
        """The contents of some records."""

    def name(self, row: int) -> str:
        """The name of a record in messages."""


class LoadedRecords:
    """The records of files that can only be read in their order, such as compressed ones; they are kept in memory.

    Args:
        paths: Paths or addresses that TensorFlow reads.
        compression: ``GZIP``, ``ZLIB`` or empty.

    Raises:
        DataError: A file is damaged.
    """

    def __init__(self, paths: Sequence[str], compression: str) -> None:
        self._records: list[bytes] = []
        self._paths = paths
        free, size = available_memory(), 0
        try:
            for batch in untuned(tf.data.TFRecordDataset(paths, compression).batch(1024)):
                self._records.extend(batch.numpy())
                size += sum(map(len, self._records[-len(batch) :]))
                if size > free:
                    sizes = f"{numbers.size(size)}, and {numbers.size(free)} are available"
                    raise DataError(f"the records of {paths[0]} do not fit in memory: {len(self)} records take {sizes}")
        except tf.errors.OpError as error:
            raise DataError(f"cannot read the records of {paths[0].rpartition('/')[0]}: {op_message(error)}") from error

    def __len__(self) -> int:
        return len(self._records)

    def get(self, rows: Rows) -> list[bytes]:
        """The contents of some records."""
        return [self._records[row] for row in rows.tolist()]

    def name(self, row: int) -> str:
        """The name of a record in messages."""
        return f"record {row} of {', '.join(path.rpartition('/')[2] for path in self._paths)}"


class RecordSource:
    """The features of records.

    Args:
        records: The records.
        description: Their features.
        decoders: Decoders of the images.
    """

    def __init__(self, records: Records, description: FeatureDescription, decoders: dict[str, ImageDecoder]) -> None:
        self.specs = {name: ArraySpec(each.shape, each.dtype) for name, each in description.features.items()}
        self._records = records
        self._features = description.features
        self._decoders = decoders

    def __len__(self) -> int:
        return len(self._records)

    def decode(self, rows: Rows, names: Sequence[str]) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.bool_]]:
        """Decode some features of some records."""
        contents = self._records.get(rows)
        valid = np.ones(len(rows), np.bool_)
        try:
            parsed = self._parse(contents, names)
        except tf.errors.OpError:  # of one of them: leave out those that cannot be parsed
            valid[:] = [self._reason(content, names) is None for content in contents]
            good = [content for content, whole in zip(contents, valid, strict=True) if whole]
            parsed = self._parse(good, names) if good else {}
        values = {
            name: np.zeros((len(rows), *self._features[name].shape), numpy_type(self.specs[name])) for name in names
        }
        kept = np.flatnonzero(valid)
        for name, column in parsed.items():
            if name not in self._decoders:
                values[name][kept] = column
                continue
            images = self._decoders[name](column.tolist())
            for place, image in images.items():
                values[name][kept[place]] = image
            valid[np.delete(kept, list(images))] = False
        return values, valid

    def problem(self, row: int) -> DataError:
        """The reason why a record cannot be decoded."""
        name = self._records.name(row)
        reason = self._reason(self._records.get(np.array([row]))[0], tuple(self._features))
        return DataError(f"cannot read {name}: {reason or 'an image in it cannot be decoded'}")

    def _reason(self, content: bytes, names: Sequence[str]) -> str | None:
        """TensorFlow's message about a record that cannot be parsed."""
        try:
            self._parse([content], names)
        except tf.errors.OpError as error:
            return op_message(error)
        return None

    def _parse(self, contents: list[bytes], names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """The features of records; those of images as their bytes."""
        with tf.device("/CPU:0"):
            parsed = tf.io.parse_example(contents, {name: _to_tensorflow(self._features[name]) for name in names})
            return {name: _values(parsed[name], self._features[name]) for name in names}


def _to_tensorflow(feature: Feature) -> Any:
    """How TensorFlow parses a feature."""
    if feature.encoding:
        return tf.io.FixedLenFeature((), tf.string)
    is_number = feature.dtype != "string"
    dtype = (tf.float32 if feature.dtype.startswith("float") else tf.int64) if is_number else tf.string
    return tf.io.RaggedFeature(dtype) if feature.pad is not None else tf.io.FixedLenFeature(feature.shape, dtype)


def _values(parsed: Any, feature: Feature) -> npt.NDArray[Any]:
    """The values of a feature.

    Raises:
        InvalidArgumentError: They do not fit the feature's description.
    """
    if feature.encoding == "image":
        return np.asarray(parsed)
    if feature.encoding == "raw":
        return _decode_raw(np.asarray(parsed), feature)
    if feature.pad is not None:
        size = int(np.prod(feature.shape, dtype=np.int64))
        parsed = tf.reshape(parsed.to_tensor(feature.pad, shape=(None, size)), (-1, *feature.shape))
    values = np.asarray(parsed)
    if feature.dtype == "string":
        return np.array([_decode_text(text) for text in values.ravel()], object).reshape(values.shape)
    with np.errstate(over="ignore"):
        converted = values.astype(feature.dtype)
    changed = (
        values[converted != values]
        if values.dtype.kind == "i"
        else values[np.isfinite(values) & ~np.isfinite(converted)]
    )
    if changed.size:
        raise _invalid(f"the value {changed[0]:g}, which {feature.dtype} cannot hold")
    return converted


def _decode_raw(contents: npt.NDArray[Any], feature: Feature) -> npt.NDArray[Any]:
    """Arrays of the bytes that they have in memory, little-endian."""
    dtype = np.dtype(feature.dtype).newbyteorder("<")
    size = int(np.prod(feature.shape, dtype=np.int64)) * dtype.itemsize
    for content in contents:
        if len(content) != size:
            raise _invalid(f"{len(content)} bytes instead of {size}")
    values = np.frombuffer(b"".join(contents.tolist()), dtype).astype(feature.dtype)
    return values.reshape(-1, *feature.shape)


def _decode_text(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise _invalid(f"a text that is not UTF-8, at byte {error.start}") from error


def _invalid(problem: str) -> tf.errors.OpError:
    return tf.errors.InvalidArgumentError(None, None, problem)


def op_message(error: Exception) -> str:
    """TensorFlow's message without the names of ops."""
    return re.sub(r"^\{\{.*?\}\} | \[Op:\w+\]", "", str(error).splitlines()[0])
