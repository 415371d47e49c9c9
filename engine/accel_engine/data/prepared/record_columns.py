"""Decodes the features of TFRecord files' records with TensorFlow."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.folders.image_folder import ImageDecoder
from accel_engine.data.prepared.columns import Rows, fixed, not_finite, numpy_type
from accel_engine.data.prepared.features import Feature
from accel_engine.data.prepared.records import Records
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import DataError


class RecordColumns:
    """The features of records.

    Args:
        records: The records.
        features: Their features.
        specs: Shape and type of each feature after decoding.
    """

    def __init__(self, records: Records, features: Mapping[str, Feature], specs: dict[str, ArraySpec]) -> None:
        self.specs = specs
        self._records = records
        self._features = features
        self._decoders = {
            name: ImageDecoder(fixed(specs[name]), "uint16" if specs[name].dtype == "uint16" else "uint8")
            for name, feature in features.items()
            if feature.encoding == "image"
        }

    def __len__(self) -> int:
        return len(self._records)

    def decode(self, rows: Rows, names: Sequence[str]) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.bool_]]:
        """Decode some features of some records."""
        contents = self._records.get(rows)
        valid = np.array([content is not None for content in contents], np.bool_)
        try:
            parsed = self._parse([content for content in contents if content is not None], names)
        except tf.errors.OpError:  # of one of them: leave out those that cannot be parsed
            valid[:] = [content is not None and self._reason(content, names) is None for content in contents]
            parsed = self._parse(
                [each for each, whole in zip(contents, valid, strict=True) if whole and each is not None], names
            )
        values = {name: np.zeros((len(rows), *fixed(self.specs[name])), numpy_type(self.specs[name])) for name in names}
        kept = np.flatnonzero(valid)
        for name, column in parsed.items():
            if name not in self._decoders:
                values[name][kept] = column
                continue
            images = self._decoders[name](column.tolist())
            for place, image in images.items():
                values[name][kept[place]] = image
            valid[np.delete(kept, list(images))] = False
        for wrong in not_finite(values).values():
            valid &= ~wrong
        return values, valid

    def problem(self, row: int) -> DataError:
        """The reason why a record cannot be decoded."""
        (content,) = self._records.get(np.array([row]))
        if content is None:
            reason: str | None = "its checksum is wrong, so that it was damaged after it was written"
        else:
            reason = self._reason(content, tuple(self._features)) or "an image in it cannot be decoded"
        return DataError(f"cannot read {self._records.name(row)}: {reason}")

    def _reason(self, content: bytes, names: Sequence[str]) -> str | None:
        """TensorFlow's message about a record that cannot be parsed."""
        try:
            wrong = not_finite(self._parse([content], names))
        except tf.errors.OpError as error:
            return op_message(error)
        return f"{', '.join(wrong)} has numbers that are NaN or infinite" if wrong else None

    def _parse(self, contents: list[bytes], names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """The features of records, images as their bytes; an empty dictionary without records.

        Raises:
            OpError: A record cannot be parsed.
        """
        if not contents:
            return {}
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
        InvalidArgumentError: The values do not fit the feature's description.
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
    """TensorFlow's message without the names of ops and the places of records in a batch."""
    message = re.sub(r"^\{\{.*?\}\} | \[Op:\w+\]", "", str(error).splitlines()[0])
    message = re.sub(r"^Name: .*?, (?:Key|Feature): ", "the feature ", message)
    return re.sub(r", Index: \d+\.\s+", ": ", message)
