"""Makes arrays of the values in a request, with errors for clients, and values for answers of arrays."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.model_server.protocols import texts_array
from accel_engine.model_server.request_error import RequestError

Array = npt.NDArray[Any]

MAX_RANK = 32
"""Dimensions of an array of texts at most."""


def array_of(name: str, values: Any, spec: ArraySpec) -> Array:
    """An array of the values of an input.

    Args:
        name: The input's name, for messages.
        values: Lists in lists, numbers, texts, ``{"b64": ...}``; ``None`` for a missing number or text.
        spec: What the model takes, without the batch.

    Returns:
        In the input's type, ``[examples, ...]``.

    Raises:
        RequestError: The values do not fit the input; the message says what does.
    """
    array = _texts(name, values) if spec.dtype == "string" else _numbers(name, values, spec)
    return checked(name, array, spec)


def checked(name: str, array: Array, spec: ArraySpec) -> Array:
    """Check an array's shape. For an input of shape ``[1]``, each example may be a single number without a list.

    Raises:
        RequestError: The array has another shape; the message says which is right.
    """
    if array.ndim == 0:
        raise RequestError(f"input {name} takes a list of examples of {spec}, not a single value")
    shape = array.shape[1:]
    if shape == spec.shape:
        return array
    if spec.shape == (1,) and shape == ():
        return array[..., np.newaxis]
    if not spec.fits(shape):
        if not spec.shape:
            raise RequestError(f"input {name} takes a single value ({spec}) for each example, not a list")
        sides = "x".join(map(str, shape)) or "single values"
        raise RequestError(f"input {name} takes examples of {spec}, not {sides}")
    return array


def values_of(name: str, values: Sequence[Any], spec: ArraySpec) -> Array:
    """An array of the values of a message's field, ``[values]``, in an input's type.

    Raises:
        RequestError: A value does not fit the type.
    """
    if spec.dtype == "string":
        return texts_of(name, values)
    return typed(name, np.array(values, None if values else spec.dtype), spec)


def typed(name: str, array: Array, spec: ArraySpec) -> Array:
    """Numbers in an input's type.

    Raises:
        RequestError: A number does not fit the type, such as 300 in uint8.
    """
    wanted = np.dtype(spec.dtype)
    if array.dtype == wanted:
        return array
    if array.dtype.kind not in "biuf":
        raise RequestError(f"input {name} takes numbers ({spec}), not {_kind_of(array)}")
    if wanted.kind in "iu":
        return _whole(name, array, wanted)
    if wanted.kind == "b" and array.dtype.kind != "b":
        raise RequestError(f"input {name} takes true and false, not numbers")
    with np.errstate(over="ignore", invalid="ignore"):
        found = array.astype(wanted)
    if wanted.kind == "f" and array.size and not np.array_equal(np.isinf(found), np.isinf(array)):
        raise RequestError(f"input {name} has numbers that are too large for {spec.dtype}")
    return found


def _whole(name: str, array: Array, wanted: np.dtype[Any]) -> Array:
    limits = np.iinfo(wanted)
    if not array.size:
        return array.astype(wanted)
    low, high = array.min(), array.max()
    are_finite = array.dtype.kind != "f" or np.isfinite(array).all()
    if array.dtype.kind == "f" and not (are_finite and (array == np.floor(array)).all()):
        wrong = "fractions" if are_finite else "NaN or infinity"
        raise RequestError(f"input {name} takes whole numbers from {limits.min} to {limits.max}, not {wrong}")
    if int(low) < limits.min or int(high) > limits.max:
        wrong = low if int(low) < limits.min else high
        raise RequestError(f"input {name} takes whole numbers from {limits.min} to {limits.max}, not {wrong}")
    return array.astype(wanted)


def _numbers(name: str, values: Any, spec: ArraySpec) -> Array:
    if isinstance(values, dict):
        raise RequestError(f"input {name} takes numbers ({spec}), not an object")
    if _has_text(values):  # an array of texts would have room for the longest one in each place
        raise RequestError(f"input {name} takes numbers ({spec}), not texts")
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:  # lists of different lengths, or too many of them
        if "inhomogeneous" in str(error):
            raise RequestError(f"input {name} has lists of different lengths; examples are {spec}") from None
        raise RequestError(f"input {name} takes numbers ({spec})") from None
    if array.dtype == object:
        array = _with_missing(name, array, spec)
    if not array.size and array.dtype.kind == "f":
        return array.astype(spec.dtype)
    return typed(name, array, spec)


def _has_text(values: Any) -> bool:
    """Whether there is a text in nested lists."""
    level = [values]
    while level:
        kinds = set(map(type, level))
        if str in kinds:
            return True
        lists = level if kinds == {list} else [each for each in level if isinstance(each, list)]
        level = list(chain.from_iterable(lists))
    return False


def _with_missing(name: str, array: Array, spec: ArraySpec) -> Array:
    """Numbers as float64; ``None``, for a missing one, becomes NaN."""
    flat = array.reshape(-1).tolist()
    if not all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in flat):
        raise RequestError(f"input {name} takes numbers ({spec}); a missing one is null")
    if None in flat and np.dtype(spec.dtype).kind != "f":
        raise RequestError(f"input {name} takes whole numbers ({spec}), none of which may be missing")
    try:
        return np.array([np.nan if value is None else float(value) for value in flat]).reshape(array.shape)
    except OverflowError:
        raise RequestError(f"input {name} has numbers that are too large for {spec.dtype}") from None


def _texts(name: str, values: Any) -> Array:
    shape, flat = list[int](), values
    while isinstance(flat, list):
        shape.append(len(flat))
        if len(shape) > MAX_RANK:
            raise RequestError(f"input {name} is nested too deeply")
        flat = flat[0] if flat else None
    leaves = [values]
    for size in shape:
        if not all(isinstance(each, list) and len(each) == size for each in leaves):
            raise RequestError(f"input {name} has lists of different lengths")
        leaves = [item for each in leaves for item in each]
    return texts_array([_text(name, each) for each in leaves]).reshape(shape)


def _text(name: str, value: Any) -> str:
    if value is None:  # a missing category
        return ""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which Python's parser of JSON takes
            raise RequestError(f"input {name} takes texts in Unicode; {value[:50]!r} has half of a character") from None
        return value
    if is_base64(value):
        return as_text(name, bytes_of(name, value))
    raise RequestError(f"input {name} takes texts, not {_name_of(value)}; a missing one is null")


def texts_of(name: str, values: Iterable[bytes]) -> Array:
    """The texts of some bytes, ``[texts]``.

    Raises:
        RequestError: The bytes of a text are not UTF-8.
    """
    return texts_array([as_text(name, each) for each in values])


def as_text(name: str, content: bytes) -> str:
    """The text of some bytes.

    Raises:
        RequestError: The bytes are not UTF-8.
    """
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise RequestError(f"input {name} takes texts in UTF-8; these bytes are not UTF-8") from None


def is_base64(value: Any) -> bool:
    """Whether a value is bytes as TensorFlow Serving writes them."""
    return isinstance(value, dict) and set(value) == {"b64"}


def bytes_of(name: str, value: Mapping[str, Any]) -> bytes:
    """The bytes of ``{"b64": ...}``.

    Raises:
        RequestError: The text is not base64.
    """
    try:
        return base64.b64decode(value["b64"], validate=True)
    except (ValueError, TypeError, binascii.Error):
        raise RequestError(f"input {name}: b64 is not in base64") from None


def _name_of(value: Any) -> str:
    names = {bool: "true or false", int: "numbers", float: "numbers", list: "lists", dict: "objects"}
    return names.get(type(value), type(value).__name__)


def _kind_of(array: Array) -> str:
    return {"U": "texts", "S": "texts", "b": "true and false"}.get(array.dtype.kind, "other values")


def plain_texts(array: Array) -> list[Any]:
    """Texts as JSON has them, in nested lists."""
    texts = [text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text) for text in array.reshape(-1)]
    return texts_array(texts).reshape(array.shape).tolist()


def to_json(array: Array) -> Any:
    """An output as values for ``orjson``, which writes arrays of most types itself; NaN becomes ``null``."""
    if array.dtype.kind in "OUS":
        return plain_texts(array)
    if array.dtype.kind == "f" and array.dtype.itemsize < 4:
        array = array.astype(np.float32)
    return np.ascontiguousarray(array)


def check_same_length(inputs: Mapping[str, Array]) -> None:
    """Check that all inputs have the same number of examples.

    Raises:
        RequestError: Two inputs have different numbers of examples.
    """
    counts = {name: len(array) for name, array in inputs.items()}
    if len(set(counts.values())) > 1:
        raise RequestError(f"the inputs have different numbers of examples: {_listed(counts)}")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def check_names(given: Mapping[str, Any], specs: Mapping[str, ArraySpec]) -> None:
    """Check that a request has the inputs that the model takes, and no others.

    Raises:
        RequestError: An input is missing, or one is unknown.
    """
    if given.keys() == specs.keys():
        return
    wanted = ", ".join(f"{name} ({spec})" for name, spec in specs.items())
    missing, more = [name for name in specs if name not in given], [name for name in given if name not in specs]
    words = [f"input {missing[0]} is missing"] if missing else []
    words += [f"there is no input {more[0][:100]}"] if more else []
    raise RequestError(f"{'; '.join(words)}: the model takes {wanted}")
