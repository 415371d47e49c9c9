"""Reads the scalars, images, texts and histograms of event files.

Sources: ``event.proto``, ``summary.proto`` and ``tensor.proto`` of TensorFlow.
"""

import math
import struct
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.image_files import read_logged
from accel_engine.imported_runs.event_records import EventRecords, record_at
from accel_engine.imported_runs.source_run import ImportedMetric, SourceMedia, ValueCollector, collected
from accel_engine.protobuf import MalformedError, Message
from accel_engine.run.media import Histogram, LoggedImage, LoggedText, MediaItem, MediaKind, image_of
from accel_engine.run.media.from_arrays import MAX_PICTURES
from accel_engine.run.media.items import MAX_UNPACKED_BYTES

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
        points: Values by tag, in the order in which the tags first appear.
        media: Images, texts and histograms, by tag and kind in that order.
        began: Time of the first record, in seconds since the Unix epoch; NaN if there is none.
        notes: What is left out.

    Raises:
        OSError: A file cannot be read.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._collectors: defaultdict[str, ValueCollector] = defaultdict(ValueCollector)
        self._media: defaultdict[tuple[str, MediaKind], ValueCollector] = defaultdict(ValueCollector)
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
        self.points: dict[str, ImportedMetric] = collected(self._collectors, self.notes)
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
        elif kind := media_kind(value, plugin):
            self._media[tag, kind].add(step, time, position)
        else:
            self._others["audio" if value.data(_AUDIO) else plugin or "other values"] += 1

    def _item(self, tag: str, kind: MediaKind, position: float) -> MediaItem:
        """Read the item of a tag in the record at a position."""
        index = bisect_right(self._starts, position) - 1
        at = int(position) - self._starts[index]
        plugin = self._plugins.get(tag, "")
        try:
            # A PNG file has its own checksums.
            record = record_at(self._files[index], at, checked=kind != "image")
            values = Message(record).message(_SUMMARY).messages(_VALUE)
            return _item_of(next(each for each in reversed(values) if _is(each, tag, kind, plugin)), kind)
        except (OSError, MalformedError, StopIteration) as error:
            raise ValueError("files that changed meanwhile") from error


def _is(value: Message, tag: str, kind: MediaKind, plugin: str) -> bool:
    return value.text(_TAG) == tag and media_kind(value, plugin) == kind


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


_IMAGE, _HISTOGRAM = 4, 5  # more fields of Summary.Value
_ENCODED = 4  # of Summary.Image
_MIN, _MAX, _COUNT, _SUM, _LIMITS, _BUCKETS = 1, 2, 3, 4, 6, 7  # of HistogramProto
_SHAPE, _STRINGS = 2, 8  # more of TensorProto
_DIMENSION, _SIZE = 2, 1  # of TensorShapeProto and its Dim
_DESCRIPTION = 3  # of SummaryMetadata

_PLUGINS: dict[str, MediaKind] = {"images": "image", "text": "text", "histograms": "histogram"}

_MAX_DESCRIPTION = 500  # characters, of what is a line in the dashboard


def media_kind(value: Message, plugin: str) -> MediaKind | None:
    """The kind of a ``Summary.Value``; ``None`` if it is another than those that a run stores.

    Args:
        value: The value.
        plugin: The TensorBoard plugin that shows its tag.
    """
    if value.data(_IMAGE):
        return "image"
    if value.data(_HISTOGRAM):
        return "histogram"
    return _PLUGINS.get(plugin) if value.data(_TENSOR) else None


def _item_of(value: Message, kind: MediaKind) -> MediaItem:
    """The item of a ``Summary.Value``.

    Args:
        value: The value.
        kind: Its :func:`media_kind`.

    Raises:
        ValueError: The value is damaged, or has an unknown form. The message is a noun phrase, the same for all items
            of its kind.
    """
    try:
        tensor = value.message(_TENSOR)
        item: MediaItem
        if kind == "image":
            item = _image(value.message(_IMAGE).data(_ENCODED) or tensor.data(_STRINGS)[2:])
        elif kind == "text":
            item = _text(tensor)
        else:
            item = _old_histogram(value.message(_HISTOGRAM)) if value.data(_HISTOGRAM) else _histogram(tensor)
        about = value.message(_METADATA).text(_DESCRIPTION)[:_MAX_DESCRIPTION]
    except MalformedError as error:
        raise ValueError("damaged data") from error
    return replace(item, note="; ".join(filter(None, (about, item.note))))


def _image(files: Sequence[bytes]) -> LoggedImage:
    """The image of a file, or a grid of several."""
    if not files:
        raise ValueError("no image")
    shown = files[:MAX_PICTURES]
    pictures = [read_logged(file, MAX_UNPACKED_BYTES // len(shown)) for file in shown]
    if len({picture.shape for picture in pictures}) > 1:
        raise ValueError("several sizes in one step")
    image = image_of(np.stack(pictures) if len(pictures) > 1 else pictures[0])
    return replace(image, note=f"first of {len(files):,}: {image.note}") if len(files) > len(shown) else image


def _text(tensor: Message) -> LoggedText:
    """The text of a tensor of strings; of several, one per line, or a row of the last axis per line."""
    texts = [data.decode(errors="replace") for data in tensor.data(_STRINGS)]
    if not texts:
        raise ValueError("no text")
    shape = [dimension.integer(_SIZE) or 0 for dimension in tensor.message(_SHAPE).messages(_DIMENSION)]
    columns = max(shape[-1], 1) if len(shape) > 1 else 1
    lines = [" | ".join(texts[at : at + columns]) for at in range(0, len(texts), columns)]
    return LoggedText("\n".join(lines), f"{len(texts):,} texts" if len(texts) > 1 else "")


def _old_histogram(histogram: Message) -> Histogram:
    """The histogram of a ``HistogramProto``, whose first and last limits may be far beyond its values."""
    low, high, total, values_sum = (histogram.double(field) or 0.0 for field in (_MIN, _MAX, _COUNT, _SUM))
    limits, counts = (_numbers(histogram.data(field)) for field in (_LIMITS, _BUCKETS))
    # The sum tells values that are NaN or infinite, which are in no bin, from those that the bins leave out.
    not_finite = 0.0 if math.isfinite(values_sum) else total - float(counts.sum())
    if len(limits) != len(counts) or (total > not_finite and not len(counts)):
        raise ValueError("wrong lengths")
    if not 0 <= not_finite < 1 << 53:
        raise ValueError("wrong counts")
    return _binned(np.clip(np.concatenate([[low], limits[:-1], [high]]), low, high), counts, int(not_finite))


def _histogram(tensor: Message) -> Histogram:
    """The histogram of a tensor ``[bins, 3]``: the left and right edges of bins, and their counts."""
    form, field = _FORMATS.get(tensor.integer(_DTYPE) or 0, ("", 0))
    values = _numbers(tensor.data(_CONTENT) or tensor.data(field), form) if form else np.zeros(0)
    shape = [dimension.integer(_SIZE) or 0 for dimension in tensor.message(_SHAPE).messages(_DIMENSION)]
    if not form or len(shape) != 2 or shape[1] != 3 or len(values) != 3 * shape[0]:
        raise ValueError("wrong lengths")
    left, right, counts = values.reshape(-1, 3).T
    if not np.array_equal(left[1:], right[:-1]):
        raise ValueError("gaps between bins")
    return _binned(np.append(left, right[-1:]), counts.copy())


def _binned(edges: npt.NDArray[np.float64], counts: npt.NDArray[np.float64], not_finite: int = 0) -> Histogram:
    """A histogram without the empty bins of no width that some writers add.

    Args:
        edges: ``[bins + 1]``.
        counts: ``[bins]``.
        not_finite: Number of other values.
    """
    if not len(counts) or not (kept := (edges[1:] != edges[:-1]) | (counts != 0)).any():
        return Histogram(np.zeros(0), np.zeros(0), not_finite)
    edges = np.append(edges[:1], edges[1:][kept])
    if edges[0] == edges[-1]:
        edges = edges[[0, -1]] + [-0.5, 0.5]  # as NumPy does
        counts, kept = counts.sum(keepdims=True), np.ones(1, bool)
    try:
        return Histogram(edges, counts[kept], not_finite)
    except ValueError as error:
        raise ValueError("wrong bins") from error


def _numbers(parts: Sequence[bytes], form: str = "<f8") -> npt.NDArray[np.float64]:
    """Packed numbers."""
    data = b"".join(parts)
    if len(data) % np.dtype(form).itemsize:
        raise ValueError("wrong lengths")
    return np.frombuffer(data, form).astype(np.float64)
