"""Reads the scalars of a directory's event files, and finds its images, texts and histograms.

Sources: ``event.proto``, ``summary.proto`` and ``tensor.proto`` of TensorFlow.
"""

import math
import struct
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path

from accel_engine.imported_runs.event_media import item_of, kind_of
from accel_engine.imported_runs.event_records import EventRecords, record_at
from accel_engine.imported_runs.source_run import PointCollector, Points, SourceMedia, collected
from accel_engine.protobuf import MalformedError, Message
from accel_engine.run.media import MediaItem, MediaKind

_WALL_TIME, _STEP, _SUMMARY, _SESSION_LOG = 1, 2, 5, 7  # fields of Event
_VALUE = 1  # of Summary
_TAG, _SIMPLE_VALUE, _AUDIO, _TENSOR, _METADATA = 1, 2, 6, 8, 9  # of Summary.Value
_PLUGIN_DATA, _PLUGIN_NAME = 1, 1  # of SummaryMetadata and its PluginData
_STATUS, _START = 1, 1  # of SessionLog
_DTYPE, _CONTENT = 1, 4  # of TensorProto
_FLOAT, _DOUBLE = 1, 2  # dtypes
_FORMATS = {_FLOAT: ("<f", 5), _DOUBLE: ("<d", 6)}
"""Format and field of a tensor's value by its dtype; TensorFlow converts scalars to float32."""


class EventValues:
    """The scalars of a directory, and where its images, texts and histograms are.

    Args:
        files: Its event files.

    Attributes:
        points: Points by tag, in the order in which the tags first appear.
        media: Images, texts and histograms, by tag and kind in that order.
        began: Time of the first record, in seconds since the Unix epoch; NaN if there is none.
        notes: What is left out.

    Raises:
        OSError: A file cannot be read.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._collectors: defaultdict[str, PointCollector] = defaultdict(PointCollector)
        self._media: defaultdict[tuple[str, MediaKind], PointCollector] = defaultdict(PointCollector)
        self._files: list[Path] = []
        self._starts: list[int] = []  # bytes of the files before each: with them, a number tells a record of any file
        self._plugins: dict[str, str] = {}
        self._others: Counter[str] = Counter()
        self._malformed = 0
        self.began = math.nan
        self.notes: list[str] = []
        for file in sorted(files, key=lambda file: (_first_time(file), file.name)):
            self._starts.append(self._starts[-1] + self._files[-1].stat().st_size if self._files else 0)
            self._files.append(file)
            records = EventRecords(file)
            for at, record in records:
                self._read(record, self._starts[-1] + at)
            if records.problem:
                self.notes.append(f"{file.name}: {records.problem}")
        if self._malformed:
            self.notes.append(f"{self._malformed:,} records are not events and are left out")
        if self._others:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self._others.most_common())
            self.notes.append(f"only scalars, images, texts and histograms are imported; left out: {kinds}")
        self.points: dict[str, Points] = collected(self._collectors, self.notes)
        found = collected({f"{tag} ({kind})": media for (tag, kind), media in self._media.items()}, self.notes)
        self.media = [
            SourceMedia(tag, kind, found[name], partial(self._item, tag, kind))
            for tag, kind in self._media
            if (name := f"{tag} ({kind})") in found
        ]

    def _read(self, record: bytes, position: int) -> None:
        try:
            event = Message(record)
            time, step = event.double(_WALL_TIME) or math.nan, event.integer(_STEP) or 0
            self.began = time if math.isnan(self.began) else self.began
            if event.data(_SUMMARY):
                for value in event.message(_SUMMARY).messages(_VALUE):
                    self._add(value, step, time, position)
            elif event.message(_SESSION_LOG).integer(_STATUS) == _START:
                for collector in (*self._collectors.values(), *self._media.values()):
                    collector.restart(step)
        except MalformedError:
            self._malformed += 1

    def _add(self, value: Message, step: int, time: float, position: int) -> None:
        tag, number = value.text(_TAG), value.single(_SIMPLE_VALUE)
        for metadata in value.data(_METADATA):
            self._plugins.setdefault(tag, _plugin(metadata))
        plugin = self._plugins.get(tag, "")
        if number is None and plugin == "scalars":
            number = _scalar(value.message(_TENSOR))
        if number is not None:
            self._collectors[tag].add(step, time, number)
        elif kind := kind_of(value, plugin):
            self._media[tag, kind].add(step, time, position)
        else:
            self._others["audio" if value.data(_AUDIO) else plugin or "other values"] += 1

    def _item(self, tag: str, kind: MediaKind, position: float) -> MediaItem:
        """Read the item of a tag in the record at a position."""
        index = bisect_right(self._starts, position) - 1
        at = int(position) - self._starts[index]
        plugin = self._plugins.get(tag, "")
        try:
            # A PNG file has checksums of its own.
            record = record_at(self._files[index], at, checked=kind != "image")
            values = Message(record).message(_SUMMARY).messages(_VALUE)
            return item_of(next(each for each in reversed(values) if _is(each, tag, kind, plugin)), kind)
        except (OSError, MalformedError, StopIteration) as error:
            raise ValueError("files that changed meanwhile") from error


def _is(value: Message, tag: str, kind: MediaKind, plugin: str) -> bool:
    return value.text(_TAG) == tag and kind_of(value, plugin) == kind


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
    for _, record in EventRecords(file):
        try:
            return Message(record).double(_WALL_TIME) or math.inf
        except MalformedError:
            break
    return math.inf
