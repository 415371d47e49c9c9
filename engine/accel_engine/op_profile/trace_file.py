"""Reads the traces that TensorFlow's profiler writes: files ``*.xplane.pb`` with a message ``XSpace``.

Source of the field numbers: tsl/profiler/protobuf/xplane.proto, which TensorFlow's headers contain. All times are
picoseconds.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from accel_engine.errors import RunError
from accel_engine.protobuf import MalformedError, Message

Stat: TypeAlias = int | float | str | bytes
"""The value of a statistic."""

SUFFIX = ".xplane.pb"

_PLANES = 1
_PLANE_NAME, _LINES, _EVENT_METADATA, _STAT_METADATA, _PLANE_STATS = 2, 3, 4, 5, 6
_LINE_NAME, _LINE_NANOSECONDS, _EVENTS = 2, 3, 4
_METADATA_NAME, _METADATA_STATS = 2, 5
_STAT_ID, _DOUBLE, _UNSIGNED, _SIGNED, _STRING, _BYTES, _REFERENCE = 1, 2, 3, 4, 5, 6, 7

_EVENT_ID, _OFFSET, _DURATION, _EVENT_STATS = 1 << 3, 2 << 3, 3 << 3, 4 << 3 | 2
"""Tags of the fields of an event, all of one byte."""


class TraceEvent(NamedTuple):
    """Something that a thread or a stream did."""

    begin: int
    """Its beginning."""
    end: int
    """Its end."""
    name: int
    """Number of its name, see :meth:`TracePlane.name_of`."""
    stats: tuple[bytes, ...]
    """Its encoded statistics, see :meth:`TracePlane.stats_of`."""


class TraceLine:
    """A thread or a stream.

    Args:
        data: The encoded message.
    """

    def __init__(self, data: bytes) -> None:
        self._message = Message(data)
        self.name = self._message.text(_LINE_NAME)

    @cached_property
    def events(self) -> list[TraceEvent]:
        """The decoded events, in the order of the file."""
        base = 1000 * (self._message.integer(_LINE_NANOSECONDS) or 0)
        return [_event(data, base) for data in self._message.data(_EVENTS)]


class TracePlane:
    """The host or a device.

    Args:
        data: The encoded message.

    Attributes:
        name: Its name, such as ``/host:CPU`` or ``/device:GPU:0``.
        lines: Its threads or streams.
    """

    def __init__(self, data: bytes) -> None:
        self._message = Message(data)
        self.name = self._message.text(_PLANE_NAME)
        self.lines = [TraceLine(line) for line in self._message.data(_LINES)]

    @cached_property
    def stats(self) -> Mapping[str, Stat]:
        """Statistics of the device."""
        return self.stats_of(self._message.data(_PLANE_STATS))

    def name_of(self, number: int) -> str:
        """The name of an event."""
        found = self._metadata.get(number)
        return found.text(_METADATA_NAME) if found else ""

    def metadata(self) -> Iterator[tuple[int, str, Mapping[str, Stat]]]:
        """The numbers, names and statistics that all events of a name share."""
        for number, message in self._metadata.items():
            yield number, message.text(_METADATA_NAME), self.stats_of(message.data(_METADATA_STATS))

    def stats_of(self, stats: Iterator[bytes] | tuple[bytes, ...] | list[bytes]) -> dict[str, Stat]:
        """Decode statistics, by name."""
        found: dict[str, Stat] = {}
        for data in stats:
            message = Message(data)
            found[self._stat_names.get(message.integer(_STAT_ID) or 0, "")] = self._value(message)
        return found

    def _value(self, stat: Message) -> Stat:
        if (reference := stat.integer(_REFERENCE)) is not None:
            return self._stat_names.get(reference, "")
        for number in (_UNSIGNED, _SIGNED):
            if (whole := stat.integer(number)) is not None:
                return whole
        if (number_value := stat.double(_DOUBLE)) is not None:
            return number_value
        if raw := stat.data(_BYTES):
            return raw[-1]
        return stat.text(_STRING)

    @cached_property
    def _metadata(self) -> dict[int, Message]:
        return _map(self._message, _EVENT_METADATA)

    @cached_property
    def _stat_names(self) -> dict[int, str]:
        return {number: each.text(_METADATA_NAME) for number, each in _map(self._message, _STAT_METADATA).items()}


def written_traces(directory: Path) -> dict[Path, int]:
    """The folders with traces in a directory for XProf, with the time in which each was written, in nanoseconds.

    TensorFlow names them by the second, so that one may replace another.
    """
    files = directory.glob(f"plugins/profile/*/*{SUFFIX}")
    return {file.parent: file.stat().st_mtime_ns for file in files}


def read_trace(folder: Path) -> list[TracePlane]:
    """Read all planes of a trace.

    Args:
        folder: The folder with its files, one for each host.

    Raises:
        RunError: There are none, or one cannot be read.
    """
    files = sorted(folder.glob(f"*{SUFFIX}"))
    if not files:
        raise RunError(f"there is no trace in {folder}: TensorFlow's profiler has written none")
    try:
        return [TracePlane(data) for file in files for data in Message(file.read_bytes()).data(_PLANES)]
    except (OSError, MalformedError) as error:
        raise RunError(f"the trace in {folder} cannot be read: {error}") from error


def _map(plane: Message, field: int) -> dict[int, Message]:
    """A field of type ``map<int64, ...>``."""
    return {entry.integer(1) or 0: entry.message(2) for entry in plane.messages(field)}


def _event(data: bytes, base: int) -> TraceEvent:
    """Decode an event: there may be a million, so that this is several times as fast as :class:`Message`."""
    at, size, name, offset, duration = 0, len(data), 0, 0, 0
    stats: tuple[bytes, ...] = ()
    while at < size:
        tag = data[at]
        value = shift = 0
        at += 1
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if tag == _EVENT_STATS:
            stats += (data[at : at + value],)
            at += value
        elif tag == _EVENT_ID:
            name = value
        elif tag == _OFFSET:
            offset = value
        elif tag == _DURATION:
            duration = value
        elif tag & 7 == 2:
            at += value
    begin = base + offset
    return TraceEvent(begin, begin + duration, name, stats)
