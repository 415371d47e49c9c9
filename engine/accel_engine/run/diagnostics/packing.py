"""Packs reports as JSON and bytes, and checks that the arrays and lists of each fit together.

A dataclass is an object with its name as ``type``. An array is an object with ``dtype`` (little-endian), ``shape``, and
``start`` and ``length`` of its bytes in the body, compressed with zlib. NaN and infinities are ``null``.
"""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, get_args, get_origin

import numpy as np
import numpy.typing as npt

from accel_engine.json_values import Count, convert, encode
from accel_engine.run.diagnostics import reports
from accel_engine.run.diagnostics.reports import SCORE_BINS
from accel_engine.run.diagnostics.views import Tagged
from accel_engine.run.store.compressed_body import decompressed

_LEVEL = 1
"""Level of compression: 4 MB of a confusion matrix take 10 ms."""

MAX_BYTES = 64 << 20
"""More than all arrays of a report have."""

_DTYPES = frozenset({"|u1", "<i8", "<f4", "<f8"})

_SHAPES: Mapping[str, Mapping[str, tuple[str | int, ...]]] = {
    "Scores": {"positives": ("labels", SCORE_BINS), "negatives": ("labels", SCORE_BINS)},
    "ClassificationReport": {"counts": ("classes", "classes")},
    "MultiLabelReport": {"counts": ("labels", 2, 2)},
    "RegressionReport": {
        "names": ("names",),
        "mae": ("names",),
        "rmse": ("names",),
        "r2": ("names",),
        "points": ("names", "points", 2),
        "residuals": ("names", "bins"),
        "residual_edges": ("names", "edges"),
    },
    "SegmentationReport": {"counts": ("classes", "classes")},
    "ReconstructionReport": {"errors": ("bins",), "error_edges": ("edges",)},
    "SequenceReport": {"counts": ("classes", "classes")},
    "ForecastReport": {"names": ("names",), "mae": ("names", "horizon"), "baseline": ("names", "horizon")},
    "Image": {"pixels": ("height", "width", "channels")},
    "Mask": {"classes": ("height", "width")},
    "Row": {"names": ("columns",), "values": ("columns",)},
    "Tokens": {"tokens": ("tokens",), "losses": ("tokens",)},
    "Curve": {"values": ("series", "points")},
    "Spectrogram": {"levels": ("frequencies", "times")},
    "Parts": {"names": ("parts",), "views": ("parts",)},
}
"""The axes of fields, by class; axes of one name in an object are of one length."""


@dataclass(frozen=True, slots=True)
class _PackedArray:
    dtype: str
    shape: tuple[Count, ...]
    start: Count
    length: Count


class _Body:
    """The arrays of a report, all together of a bounded size."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = MAX_BYTES

    def array(self, packed: _PackedArray) -> npt.NDArray[Any]:
        if packed.dtype not in _DTYPES:
            raise ValueError(f"it has no array of {packed.dtype}")
        size = math.prod(packed.shape) * np.dtype(packed.dtype).itemsize
        self._left -= size
        if self._left < 0:
            raise ValueError("its arrays are too large")
        data = decompressed(self._data[packed.start : packed.start + packed.length], size)
        return np.frombuffer(data, packed.dtype).reshape(packed.shape)


def pack(report: reports.ValidationReport) -> tuple[str, bytes]:
    """Pack a report as a JSON head and a body."""
    body = bytearray()
    return encode(_packed(report, body)), bytes(body)


def unpack(head: dict[str, Any], body: bytes) -> reports.ValidationReport:
    """Unpack a report. Reports and views that this program does not know are left out.

    Raises:
        ValueError: A value is missing or wrong, or the body is damaged.
    """
    if head.get("type") != reports.ValidationReport.__name__:
        raise ValueError("it is not a report")
    found = convert(head, reports.ValidationReport, partial(_unpacked, _Body(body)))
    known = reports.ValidationReport(tuple(each for each in found.outputs if each is not None))
    check_shapes(known.outputs)
    return known


def _packed(value: Any, body: bytearray) -> Any:
    if isinstance(value, np.ndarray):
        stored = value.astype(value.dtype.newbyteorder("<"))
        data = zlib.compress(stored.tobytes(), _LEVEL)
        start = len(body)
        body += data
        return {"dtype": stored.dtype.str, "shape": stored.shape, "start": start, "length": len(data)}
    if is_dataclass(value):
        packed = {each.name: _packed(getattr(value, each.name), body) for each in fields(value)}
        return {"type": type(value).__name__} | packed
    if isinstance(value, tuple):
        return [_packed(each, body) for each in value]
    return value


def _unpacked(body: _Body, kind: Any, value: Any) -> Any:
    """Unpack an array, or a dataclass of one of several classes; ``None`` for a class that is not known."""
    if get_origin(kind) is Tagged:
        (classes,) = get_args(kind)
        known = next((each for each in get_args(classes) if each.__name__ == value["type"]), None)
        return None if known is None else convert(value, known, partial(_unpacked, body))
    array = body.array(convert(value, _PackedArray))
    (number,) = get_args(get_args(kind)[1])  # NumPy's NDArray[number] is ndarray[shape, dtype[number]]
    if array.dtype.type is not number:
        raise ValueError("it is not an array of its type")
    return array


def check_shapes(value: Any) -> None:
    """Check a report, and all that it contains.

    Raises:
        ValueError: Something has another shape than it should have.
    """
    if isinstance(value, tuple):
        for item in value:
            check_shapes(item)
    elif is_dataclass(value):
        sizes: dict[str, int] = {}
        for name, axes in _SHAPES.get(type(value).__name__, {}).items():
            _check(name, getattr(value, name), axes, sizes)
        if "bins" in sizes and sizes["edges"] != sizes["bins"] + 1:
            raise ValueError("a histogram has one more edge than bins")
        if sizes.get("channels", 1) not in (1, 3, 4):
            raise ValueError(f"an image has no {sizes['channels']} channels")
        for item in fields(value):
            check_shapes(getattr(value, item.name))


def _check(name: str, value: Any, axes: tuple[str | int, ...], sizes: dict[str, int]) -> None:
    if value is None:
        return
    shape = (len(value),) if isinstance(value, tuple) else value.shape
    wanted = [
        axis if isinstance(axis, int) else sizes.setdefault(axis, size) for axis, size in zip(axes, shape, strict=False)
    ]
    if len(shape) != len(axes) or list(shape) != wanted:
        raise ValueError(f"{name} has the shape {list(shape)}")
