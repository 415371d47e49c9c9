"""Packs reports as JSON and bytes.

A dataclass is an object with its name as ``type``. An array is an object with ``dtype`` (little-endian), ``shape``, and
``start`` and ``length`` of its bytes in the body, compressed with zlib. NaN and infinities are ``null``.
"""

import json
import math
import zlib
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.run.diagnostics import reports, views
from accel_engine.run.diagnostics.report_shapes import check_shapes
from accel_engine.stored_values import check_of, decompressed, make, shallow

_LEVEL = 1
"""Level of compression: 4 MB of a confusion matrix take 10 ms."""

MAX_BYTES = 64 << 20
"""More than all arrays of a report have."""

_DTYPES = frozenset({"|u1", "<i8", "<f4", "<f8"})


@dataclass(frozen=True, slots=True)
class _PackedArray:
    dtype: str
    shape: tuple[int, ...]
    start: int
    length: int


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


_CLASSES: dict[str, Any] = {
    name: each for module in (reports, views) for name, each in vars(module).items() if is_dataclass(each)
}


def pack(report: reports.ValidationReport) -> tuple[str, bytes]:
    """Pack a report as a JSON head and a body."""
    body = bytearray()
    return json.dumps(_packed(report, body)), bytes(body)


def unpack(head: dict[str, Any], body: bytes) -> reports.ValidationReport:
    """Unpack a report. Reports and views that this program does not know are left out.

    Raises:
        ValueError: A value is missing or wrong, or the body is damaged.
    """
    outputs = head.get("outputs")
    if head.get("type") != reports.ValidationReport.__name__ or not isinstance(outputs, list):
        raise ValueError("it is not a report")
    source = _Body(body)
    unpacked = (_unpacked(each, source) for each in shallow(outputs))
    found = make(reports.ValidationReport, {"outputs": [each for each in unpacked if each is not None]})
    for report in found.outputs:
        check_shapes(report)
    return found


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
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _unpacked(value: Any, body: _Body) -> Any:
    if isinstance(value, list):
        return tuple(_unpacked(each, body) for each in value)
    if not isinstance(value, dict):
        return value
    if "dtype" in value:
        return body.array(make(_PackedArray, value))
    known = _CLASSES.get(check_of(str)(value.get("type")))
    if known is None:
        return None
    arguments = {each.name: _unpacked(value[each.name], body) for each in fields(known) if each.name in value}
    # Only a number that is not finite is null in place of a float.
    missing = {
        each.name: math.nan for each in fields(known) if each.type is float and arguments.get(each.name, 0.0) is None
    }
    return make(known, arguments | missing)
