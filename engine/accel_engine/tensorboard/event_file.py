"""Writes a TensorBoard event file."""

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine import clock
from accel_engine.image_files import encode_png
from accel_engine.protobuf import bytes_field, double_field, integer_field, text_field
from accel_engine.run.media import Histogram, LoggedImage, LoggedText, MediaItem
from accel_engine.tensorboard import records
from accel_engine.tensorboard.records import summary_record

PATTERN = "events.out.tfevents.*"
"""Glob pattern of event files."""

_IMAGE, _HISTOGRAM, _TENSOR, _METADATA = 4, 5, 8, 9  # fields of Summary.Value
_HEIGHT, _WIDTH, _CHANNELS, _ENCODED = 1, 2, 3, 4  # of Summary.Image
_MIN, _MAX, _COUNT, _SUM, _LIMITS, _BUCKETS = 1, 2, 3, 4, 6, 7  # of HistogramProto
_TYPE, _SHAPE, _STRINGS = 1, 2, 8  # of TensorProto
_DIMENSION, _SIZE = 2, 1  # of TensorShapeProto and its Dim
_STRING = 7  # a DataType
_PLUGIN, _DESCRIPTION = 1, 3  # of SummaryMetadata
_PLUGIN_NAME = 1  # of SummaryMetadata.PluginData


def remove_event_files(directory: Path) -> None:
    """Delete the event files in a directory."""
    for file in directory.glob(PATTERN):
        file.unlink()


class EventFile:
    """A new event file, which replaces what TensorBoard has read from its directory before.

    Args:
        directory: The directory, created if needed.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        now = clock.now()
        self._file = (directory / PATTERN.replace("*", f"{int(now):010d}.accel-tui")).open("wb")
        self._file.write(records.version_record(now))
        self.restart(0)

    def restart(self, step: int) -> None:
        """Make TensorBoard discard the steps from ``step`` on."""
        self._file.write(records.restart_record(clock.now(), step))

    def add(
        self, tag: str, times: npt.NDArray[np.float64], steps: npt.NDArray[np.int64], values: npt.NDArray[np.float32]
    ) -> None:
        """Write scalars of one tag; see :func:`accel_engine.tensorboard.records.scalars`."""
        if len(steps):
            self._file.write(records.scalars(tag, times, steps, values))

    def add_media(self, tag: str, time: float, step: int, item: MediaItem) -> None:
        """Write an image, a text or a histogram, as TensorBoard's plugins read them."""
        self._file.write(_media_record(tag, time, step, item))

    def flush(self) -> None:
        """Flush the file, so that TensorBoard can read it."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()


def _media_record(tag: str, time: float, step: int, item: MediaItem) -> bytes:
    """Encode an item. A histogram without finite values has no bins.

    Args:
        tag: The tag.
        time: Seconds since the Unix epoch.
        step: Not negative.
        item: The item.
    """
    about = text_field(_DESCRIPTION, item.note) if item.note else b""
    match item:
        case LoggedImage(pixels):
            height, width, channels = pixels.shape
            sides = integer_field(_HEIGHT, height) + integer_field(_WIDTH, width) + integer_field(_CHANNELS, channels)
            value = bytes_field(_IMAGE, sides + bytes_field(_ENCODED, encode_png(pixels)))
        case LoggedText(text):
            shape = bytes_field(_SHAPE, bytes_field(_DIMENSION, integer_field(_SIZE, 1)))
            tensor = integer_field(_TYPE, _STRING) + shape + bytes_field(_STRINGS, text.encode("utf-8", "replace"))
            value = bytes_field(_TENSOR, tensor)
            about += bytes_field(_PLUGIN, text_field(_PLUGIN_NAME, "text"))
        case Histogram():
            value = bytes_field(_HISTOGRAM, _histogram(item))
    return summary_record(tag, time, step, value + (bytes_field(_METADATA, about) if about else b""))


def _histogram(histogram: Histogram) -> bytes:
    """A ``HistogramProto``, whose sum is NaN if values are not finite, which only its count includes."""
    total = double_field(_COUNT, float(histogram.counts.sum()) + histogram.not_finite)
    if histogram.not_finite:
        total += double_field(_SUM, math.nan)
    if not len(histogram.counts):
        return total
    ends = double_field(_MIN, histogram.edges[0]) + double_field(_MAX, histogram.edges[-1])
    limits = bytes_field(_LIMITS, histogram.edges[1:].astype("<f8").tobytes())
    buckets = bytes_field(_BUCKETS, histogram.counts.astype("<f8").tobytes())
    return ends + total + limits + buckets
