"""Reads the images, texts and histograms of event files.

Sources: ``summary.proto``, ``histogram.proto`` and ``tensor.proto`` of TensorFlow; the plugins of TensorBoard for the
shapes of tensors.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from accel_engine import png
from accel_engine.protobuf import MalformedError, Message
from accel_engine.run.media import Histogram, Image, MediaItem, MediaKind, Text, image_of
from accel_engine.run.media.from_arrays import MAX_PICTURES
from accel_engine.run.media.items import MAX_UNPACKED_BYTES

_IMAGE, _HISTOGRAM, _TENSOR, _METADATA = 4, 5, 8, 9  # fields of Summary.Value
_ENCODED = 4  # of Summary.Image
_MIN, _MAX, _COUNT, _SUM, _LIMITS, _BUCKETS = 1, 2, 3, 4, 6, 7  # of HistogramProto
_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8  # of TensorProto
_DIMENSION, _SIZE = 2, 1  # of TensorShapeProto and its Dim
_DESCRIPTION = 3  # of SummaryMetadata
_NUMBERS = {1: ("<f4", 5), 2: ("<f8", 6)}  # by dtype: its numbers, and the field that has them if they are no content

_PLUGINS: dict[str, MediaKind] = {"images": "image", "text": "text", "histograms": "histogram"}

_MAX_DESCRIPTION = 500  # characters, of what is a line in the dashboard


def kind_of(value: Message, plugin: str) -> MediaKind | None:
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


def item_of(value: Message, kind: MediaKind) -> MediaItem:
    """The item of a ``Summary.Value``.

    Args:
        value: The value.
        kind: Its :func:`kind_of`.

    Raises:
        ValueError: It is damaged, or not of a form that is read. The message is a noun phrase, the same for all items
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


def _image(files: Sequence[bytes]) -> Image:
    """The image of a PNG file, or a grid of several."""
    if not files:
        raise ValueError("no image")
    shown = files[:MAX_PICTURES]
    pictures = [png.decode(file, MAX_UNPACKED_BYTES // len(shown)) for file in shown]
    if len({picture.shape for picture in pictures}) > 1:
        raise ValueError("several sizes in one step")
    image = image_of(np.stack(pictures) if len(pictures) > 1 else pictures[0])
    return replace(image, note=f"first of {len(files):,}: {image.note}") if len(files) > len(shown) else image


def _text(tensor: Message) -> Text:
    """The text of a tensor of strings; of several, one per line, or a row of the last axis per line."""
    texts = [data.decode(errors="replace") for data in tensor.data(_STRINGS)]
    if not texts:
        raise ValueError("no text")
    shape = [dimension.integer(_SIZE) or 0 for dimension in tensor.message(_SHAPE).messages(_DIMENSION)]
    columns = max(shape[-1], 1) if len(shape) > 1 else 1
    lines = [" | ".join(texts[at : at + columns]) for at in range(0, len(texts), columns)]
    return Text("\n".join(lines), f"{len(texts):,} texts" if len(texts) > 1 else "")


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
    form, field = _NUMBERS.get(tensor.integer(_DTYPE) or 0, ("", 0))
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
