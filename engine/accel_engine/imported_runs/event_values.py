"""Reads the scalars of a directory's event files.

Sources: ``event.proto``, ``summary.proto`` and ``tensor.proto`` of TensorFlow.
"""

import math
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from accel_engine.imported_runs.event_records import EventRecords
from accel_engine.imported_runs.source_run import PointCollector, Points, collected
from accel_engine.protobuf import MalformedError, Message

_WALL_TIME, _STEP, _SUMMARY, _SESSION_LOG = 1, 2, 5, 7  # fields of Event
_VALUE = 1  # of Summary
_TAG, _SIMPLE_VALUE, _IMAGE, _HISTOGRAM, _AUDIO, _TENSOR, _METADATA = 1, 2, 4, 5, 6, 8, 9  # of Summary.Value
_PLUGIN_DATA, _PLUGIN_NAME = 1, 1  # of SummaryMetadata and its PluginData
_STATUS, _START = 1, 1  # of SessionLog
_DTYPE, _CONTENT = 1, 4  # of TensorProto
_FLOAT, _DOUBLE = 1, 2  # dtypes
_FORMATS = {_FLOAT: ("<f", 5), _DOUBLE: ("<d", 6)}
"""Format and field of a tensor's value by its dtype; TensorFlow converts scalars to float32."""

_OLD_KINDS = {_IMAGE: "images", _HISTOGRAM: "histograms", _AUDIO: "audio"}


class EventValues:
    """The scalars of a directory.

    Args:
        files: Its event files.

    Attributes:
        points: Points by tag, in the order in which the tags first appear.
        began: Time of the first record, in seconds since the Unix epoch; NaN if there is none.
        notes: What is left out.

    Raises:
        OSError: A file cannot be read.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._collectors: defaultdict[str, PointCollector] = defaultdict(PointCollector)
        self._plugins: dict[str, str] = {}
        self._others: Counter[str] = Counter()
        self._malformed = 0
        self.began = math.nan
        self.notes: list[str] = []
        for file in sorted(files, key=lambda file: (_first_time(file), file.name)):
            records = EventRecords(file)
            for record in records:
                self._read(record)
            if records.problem:
                self.notes.append(f"{file.name}: {records.problem}")
        if self._malformed:
            self.notes.append(f"{self._malformed:,} records are not events and are left out")
        if self._others:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self._others.most_common())
            self.notes.append(f"only scalars are imported; left out: {kinds}")
        self.points: dict[str, Points] = collected(self._collectors, self.notes)

    def _read(self, record: bytes) -> None:
        try:
            event = Message(record)
            time, step = event.double(_WALL_TIME) or math.nan, event.integer(_STEP) or 0
            self.began = time if math.isnan(self.began) else self.began
            if event.data(_SUMMARY):
                for value in event.message(_SUMMARY).messages(_VALUE):
                    self._add(value, step, time)
            elif event.message(_SESSION_LOG).integer(_STATUS) == _START:
                for collector in self._collectors.values():
                    collector.restart(step)
        except MalformedError:
            self._malformed += 1

    def _add(self, value: Message, step: int, time: float) -> None:
        tag, number = value.text(_TAG), value.single(_SIMPLE_VALUE)
        for metadata in value.data(_METADATA):
            self._plugins.setdefault(tag, _plugin(metadata))
        plugin = self._plugins.get(tag, "")
        if number is None and plugin == "scalars":
            number = _scalar(value.message(_TENSOR))
        if number is not None:
            self._collectors[tag].add(step, time, number)
        else:
            kind = next((kind for field, kind in _OLD_KINDS.items() if value.data(field)), plugin or "other values")
            self._others[kind] += 1


@lru_cache(maxsize=1024)
def _plugin(metadata: bytes) -> str:
    """The TensorBoard plugin that shows a value: ``scalars``, ``images``, ``text`` and so on."""
    return Message(metadata).message(_PLUGIN_DATA).text(_PLUGIN_NAME)


def _scalar(tensor: Message) -> float | None:
    """The value of a tensor of shape ``[]``; ``None`` for other shapes and types."""
    form, field = _FORMATS.get(tensor.integer(_DTYPE) or 0, ("", 0))
    for data in (*tensor.data(_CONTENT), *tensor.data(field)):
        if form and len(data) == struct.calcsize(form):
            return float(struct.unpack(form, data)[0])
    return tensor.double(field) if form == "<d" else tensor.single(field)


def _first_time(file: Path) -> float:
    """The time of a file's first record; infinite if it has none."""
    for record in EventRecords(file):
        try:
            return Message(record).double(_WALL_TIME) or math.inf
        except MalformedError:
            break
    return math.inf
