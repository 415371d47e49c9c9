"""The features of ``tf.train.Example``: their description, and the features of a record; without TensorFlow.

It is a JSON file beside the records, ``NAME.features.json`` for ``NAME.tfrecord`` or ``features.json``::

    {
      "features": {
        "image": {"encoding": "image", "shape": [28, 28, 1]},
        "pixels": {"encoding": "raw", "dtype": "uint8", "shape": [28, 28, 1]},
        "words": {"dtype": "int64", "shape": [100], "pad": 0},
        "label": {"dtype": "int64", "shape": []}
      },
      "target": ["label"],
      "weight": "importance",
      "class_names": ["cat", "dog"]
    }

All but ``features`` can be left out. ``dtype`` and ``shape`` are of one example. Without an ``encoding``, a
feature is stored as a list of numbers or strings; ``raw`` are the bytes of an array, and ``image`` is an image
file. ``pad`` is the value that fills up shorter lists; longer ones are cut.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from accel_engine.errors import DataError
from accel_engine.image_files import parse_header
from accel_engine.json_values import decode, parse_object
from accel_engine.protobuf import MalformedError, Message

T = TypeVar("T")

NAME = "features.json"

_ENCODINGS = ("", "raw", "image")
_DTYPES = (
    "string",
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(f"float{bits}" for bits in (16, 32, 64)),
)


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of an example."""

    dtype: str
    """NumPy's name of its type, or ``string``."""
    shape: tuple[int, ...]
    encoding: str = ""
    """Empty, ``raw`` or ``image``."""
    pad: float | str | None = None
    """Value that fills up shorter lists; ``None`` if all have the same length."""


@dataclass(frozen=True, slots=True)
class FeatureDescription:
    """The features and targets that a description names."""

    features: dict[str, Feature]
    """The features by name."""
    target: tuple[str, ...] | None = None
    """Names of the targets; ``None`` if it does not say."""
    weight: str = ""
    """Name of the sample weights; empty for none."""
    class_names: tuple[str, ...] = ()


def read_json(path: Path, kind: type[T]) -> T:
    """Read a file that another library wrote beside data.

    Args:
        path: The file.
        kind: The type of what it has.

    Raises:
        DataError: The file cannot be read, or is not of this type.
    """
    try:
        return decode(path.read_text(), kind)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def parse_description(text: str, path: object) -> FeatureDescription:
    """Parse a description.

    Args:
        text: Its text.
        path: Its path, for messages.

    Raises:
        DataError: The text does not describe features.
    """
    try:
        values = parse_object(text)
        if "pythonClassName" in values:
            raise DataError(f"{path} was written by TensorFlow Datasets: give its folder as data, not a file in it")
        features = {name: _feature(name, each) for name, each in values["features"].items()}
        target = values.get("target")
        description = FeatureDescription(
            features,
            None if target is None else (target,) if isinstance(target, str) else tuple(map(str, target)),
            str(values.get("weight", "")),
            tuple(map(str, values.get("class_names", ()))),
        )
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except KeyError as error:
        raise DataError(f"{path} has no {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not a description of features: {error}") from error
    for name in (*(description.target or ()), *filter(None, [description.weight])):
        if name not in features:
            raise DataError(f"{path} names {name}, which is not one of its features: {', '.join(features)}")
    return description


def check_description(description: FeatureDescription, record: bytes, file: object, path: object) -> None:
    """Check that a record has the features that its description names.

    Raises:
        DataError: It is not an ``Example``, lacks a feature, or has one of another type or length.
    """
    found = parse_example(record)
    if found is None:
        raise DataError(f"the first record of {file} is not a tf.train.Example")
    for name, feature in description.features.items():
        stored = "string" if feature.encoding or feature.dtype == "string" else _stored_type(feature.dtype)
        if name not in found:
            raise DataError(f"{path} describes {name}, but the first record of {file} has {', '.join(found)}")
        dtype, values = found[name]
        if dtype != stored and values:
            raise DataError(f"{path} describes {name} as {feature.dtype}, but {file} has {dtype} values")
        length = int(np.prod(feature.shape, dtype=np.int64))
        if not feature.encoding and feature.pad is None and len(values) != length:
            raise DataError(
                f"{path} gives {name} the shape {list(feature.shape)}, {length} values, but the first record of {file} "
                f'has {len(values)}; for lists of several lengths add "pad": 0'
            )


def _stored_type(dtype: str) -> str:
    return "float32" if dtype.startswith("float") else "int64"


def how_to_describe(root: object, place: object, record: bytes) -> str:
    """The message that there is no description, with one of the first record.

    Args:
        root: The file or folder of records.
        place: Where its description belongs.
        record: The first record.
    """
    message = f"there is no description of the features of {root}: write {place}"
    suggestion = suggest_description(record)
    if suggestion is None:
        return f"{message}; its first record is not a tf.train.Example"
    return f"{message}, such as this one for its first record:\n{suggestion}"


def suggest_description(record: bytes) -> str | None:
    """A description of the features of a record as JSON, to be corrected; ``None`` if it is not an ``Example``."""
    features = parse_example(record)
    if features is None:
        return None
    lines = [f"    {json.dumps(name)}: {json.dumps(_guess(*feature))}" for name, feature in features.items()]
    target = next((name for name in features if name in ("label", "labels", "target", "y", "class")), None)
    last = f',\n  "target": {json.dumps(target)}' if target else ""
    return '{\n  "features": {\n' + ",\n".join(lines) + "\n  }" + last + "\n}"


def _guess(dtype: str, values: list[Any]) -> dict[str, Any]:
    if dtype == "string" and len(values) == 1:
        header = parse_header(values[0])
        if header is not None:
            return {"encoding": "image", "shape": list(header[:3])}
    return {"dtype": dtype, "shape": [] if len(values) == 1 else [len(values)]}


def _feature(name: str, values: dict[str, Any]) -> Feature:
    unknown = values.keys() - {"dtype", "shape", "encoding", "pad"}
    encoding, shape = values.get("encoding", ""), tuple(values.get("shape", ()))
    dtype = values.get("dtype", "uint8" if encoding == "image" else "float32")
    if unknown:
        raise DataError(f"the feature {name} has {', '.join(sorted(unknown))}; it may have dtype, shape, encoding, pad")
    if encoding not in _ENCODINGS:
        raise DataError(f"the feature {name} has the encoding {encoding}; it must be raw or image, or left out")
    if dtype not in _DTYPES or (encoding and dtype == "string"):
        raise DataError(f"the feature {name} has the dtype {dtype}; it must be one of {', '.join(_DTYPES)}")
    if not all(isinstance(side, int) and side > 0 for side in shape):
        raise DataError(f"the feature {name} has the shape {list(shape)}; it must be a list of positive numbers")
    if encoding == "image" and len(shape) != 3:
        raise DataError(f"the image {name} needs a shape [height, width, channels], to which it is resized")
    pad = values.get("pad")
    if pad is not None and isinstance(pad, str) != (dtype == "string"):
        raise DataError(f"the feature {name} has the pad {pad!r}, which is no {dtype}")
    return Feature(dtype, shape, encoding, pad)


def parse_example(content: bytes) -> dict[str, tuple[str, list[Any]]] | None:
    """The type and values of each feature of a record, sorted by name; ``None`` if it is not an ``Example``.

    TensorFlow's ``example.proto`` and ``feature.proto`` define the numbers of fields; it packs numbers.
    """
    try:
        entries = Message(content).message(1).messages(1)
        features = {entry.data(1)[-1].decode(): _values(entry.message(2)) for entry in entries}
    except (MalformedError, IndexError, UnicodeDecodeError, struct.error):
        return None
    return dict(sorted(features.items())) or None


def _values(feature: Message) -> tuple[str, list[Any]]:
    if feature.data(2):
        return "float32", [
            value for packed in feature.message(2).data(1) for (value,) in struct.iter_unpack("<f", packed)
        ]
    if feature.data(3):
        return "int64", feature.message(3).integers(1)
    return "string", feature.message(1).data(1)
