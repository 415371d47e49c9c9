"""Packs reports as JSON and bytes.

A dataclass is an object with its name as ``type``. An array is an object with ``dtype`` (little-endian), ``shape``, and
``start`` and ``length`` of its bytes in the body, compressed with zlib. NaN and infinities are ``null``.
"""

import json
import math
import zlib
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from accel_engine.run.diagnostics import reports, views

_LEVEL = 1
"""Level of compression: 4 MB of a confusion matrix take 10 ms."""

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
        KeyError: A value is missing.
        TypeError: A value has another form.
        ValueError: The body is damaged.
    """
    report = _unpacked(head, body)
    if not isinstance(report, reports.ValidationReport):
        raise TypeError("it is not a report")
    return reports.ValidationReport(tuple(each for each in report.outputs if each is not None))


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


def _unpacked(value: Any, body: bytes) -> Any:
    if isinstance(value, list):
        return tuple(_unpacked(each, body) for each in value)
    if not isinstance(value, dict):
        return value
    if "dtype" in value:
        data = _decompressed(body[value["start"] : value["start"] + value["length"]])
        return np.frombuffer(data, value["dtype"]).reshape(value["shape"])
    known = _CLASSES.get(value["type"])
    if known is None:
        return None
    arguments = {each.name: _unpacked(value[each.name], body) for each in fields(known) if each.name in value}
    # Only a number that is not finite is null in place of a float.
    missing = {
        each.name: math.nan for each in fields(known) if each.type is float and arguments.get(each.name, 0.0) is None
    }
    return known(**arguments | missing)


def _decompressed(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise ValueError(f"its body is damaged: {error}") from error
