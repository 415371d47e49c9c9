"""Traces as TensorFlow writes them, made with its own messages."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorflow.tsl.profiler.protobuf import xplane_pb2

from accel_engine.op_profile.trace_file import TracePlane, read_trace

MS = 10**9
"""Picoseconds of a millisecond."""

Span = tuple[float, float, str] | tuple[float, float, str, Mapping[str, Any]]
"""Beginning and end in milliseconds, name, and statistics. A text is stored as a reference."""


class TraceBuilder:
    """Makes a trace."""

    def __init__(self) -> None:
        self.space = xplane_pb2.XSpace()

    def plane(
        self, name: str, lines: Mapping[str, Sequence[Span]], stats: Mapping[str, Any] | None = None, began: int = 0
    ) -> "TraceBuilder":
        """Add a plane.

        Args:
            name: Its name.
            lines: The events of each line.
            stats: Its statistics.
            began: When its lines begin, in nanoseconds.
        """
        plane = self.space.planes.add(name=name)
        names: dict[str, int] = {}
        for key, value in (stats or {}).items():
            _set(plane, plane.stats.add(), key, value)
        for number, (line_name, events) in enumerate(lines.items()):
            line = plane.lines.add(id=number - 1, name=line_name, timestamp_ns=began)
            for begin, end, event_name, *rest in events:
                identity = names.setdefault(event_name, len(names) + 1)
                plane.event_metadata[identity].id = identity
                plane.event_metadata[identity].name = event_name
                event = line.events.add(metadata_id=identity)
                event.offset_ps, event.duration_ps = round(begin * MS), round((end - begin) * MS)
                for key, value in (rest[0] if rest else {}).items():
                    _set(plane, event.stats.add(), key, value)
        return self

    def planes(self, folder: Path) -> list[TracePlane]:
        """Write it, and read it again."""
        (folder / "host.xplane.pb").write_bytes(self.space.SerializeToString())
        return read_trace(folder)


def _set(plane: Any, stat: Any, name: str, value: Any) -> None:
    stat.metadata_id = _number(plane, name)
    if isinstance(value, str):
        stat.ref_value = _number(plane, value)
    elif isinstance(value, float):
        stat.double_value = value
    elif value < 0:
        stat.int64_value = value
    else:
        stat.uint64_value = value


def _number(plane: Any, name: str) -> int:
    for number, metadata in plane.stat_metadata.items():
        if metadata.name == name:
            return int(number)
    number = len(plane.stat_metadata) + 1
    plane.stat_metadata[number].id = number
    plane.stat_metadata[number].name = name
    return number
