"""An image, a text or a histogram, and its form in the table ``media``."""

import math
import zlib
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt

from accel_engine.json_values import Count, decode, encode
from accel_engine.json_values import Text as StoredText
from accel_engine.run.store.compressed_body import decompressed
from accel_engine.run.store.schema import MediaRow
from accel_engine.words import numbers

MAX_IMAGE_BYTES = 4 << 20
"""Largest image, compressed."""

MAX_TEXT_BYTES = 1 << 20
"""Longest text, in UTF-8."""

MAX_UNPACKED_BYTES = 64 << 20
"""Largest image or histogram before compression: a damaged or hostile run takes no more memory than this."""

MAX_NAME = 200
"""Bytes of the longest name, in UTF-8."""

_LEVEL = 1  # of compression; a higher one takes several times as long for a few percent

MediaKind: TypeAlias = Literal["histogram", "image", "text"]

KINDS: tuple[MediaKind, ...] = get_args(MediaKind)
"""The kinds that this program knows; it ignores others."""


@dataclass(frozen=True, slots=True, eq=False)
class LoggedImage:
    """An image.

    Raises:
        ValueError: The array has another type or shape.
    """

    kind: ClassVar[MediaKind] = "image"

    pixels: npt.NDArray[np.uint8]
    """uint8 ``[height, width, channels]`` with 1 channel (gray) or 3 (red, green, blue)."""
    note: str = ""
    """How it differs from what was logged; empty if it does not."""

    def __post_init__(self) -> None:
        shape = self.pixels.shape
        if self.pixels.dtype != np.uint8 or len(shape) != 3 or 0 in shape or shape[2] not in {1, 3}:
            raise ValueError(f"an image is uint8 [height, width, 1 or 3], not {self.pixels.dtype} {list(shape)}")


@dataclass(frozen=True, slots=True)
class LoggedText:
    """A text."""

    kind: ClassVar[MediaKind] = "text"

    text: str
    """As it was logged; pass it through :func:`accel_engine.text.printable`."""
    note: str = ""
    """How it differs from what was logged; empty if it does not."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """How often values occur.

    Raises:
        ValueError: The arrays have other types, shapes or values.
    """

    kind: ClassVar[MediaKind] = "histogram"

    edges: npt.NDArray[np.float64]
    """Limits of the bins, float64 ``[bins + 1]``, finite and ascending; empty if no value is finite."""
    counts: npt.NDArray[np.float64]
    """Number of values in each bin, float64 ``[bins]``. Each bin includes its lower limit, the last one also its upper
    limit."""
    not_finite: int = 0
    """Number of values that are NaN or infinite, which are in no bin."""
    note: str = ""
    """How it differs from what was logged; empty if it does not."""

    def __post_init__(self) -> None:
        edges, counts = self.edges, self.counts
        if edges.dtype != np.float64 or counts.dtype != np.float64 or edges.ndim != 1 or counts.ndim != 1:
            raise ValueError("a histogram has float64 edges and counts of one dimension")
        if len(edges) != len(counts) + bool(len(counts)):
            raise ValueError(f"a histogram of {len(counts)} counts has {len(counts) + 1} edges, not {len(edges)}")
        if not np.isfinite(edges).all() or (edges[1:] < edges[:-1]).any():
            raise ValueError("the edges of a histogram are finite and ascending")
        if not np.isfinite(counts).all() or (counts < 0).any() or self.not_finite < 0:
            raise ValueError("the counts of a histogram are finite and not negative")


MediaItem: TypeAlias = LoggedImage | LoggedText | Histogram


@dataclass(frozen=True, slots=True)
class MediaSeries:
    """The items of one kind that were logged under one name."""

    kind: MediaKind
    """Their kind."""
    name: str
    """As it was logged; pass it through :func:`accel_engine.text.printable_line`."""
    count: int
    """Number of items, one per step."""
    first_step: int
    """The first step with an item."""
    last_step: int
    """The last step with an item."""
    last_id: int
    """Rises whenever an item is added or replaced."""


@dataclass(frozen=True, slots=True)
class LoggedItem:
    """An item with its place in a run."""

    id: int
    """Rises with each item that is added or replaced."""
    time: float
    """When it was logged, in seconds since the Unix epoch."""
    step: int
    """Its step."""
    name: str
    """Its name."""
    item: MediaItem
    """The item."""

    @classmethod
    def of_row(cls, row: MediaRow) -> Self:
        """Decode a row of a known kind.

        Raises:
            ValueError: The row is damaged.
        """
        return cls(row.id, row.time, row.step, row.name, unpack_media(cast("MediaKind", row.kind), row.head, row.body))


@dataclass(frozen=True, slots=True)
class _TextHead:
    note: StoredText
    length: Count


@dataclass(frozen=True, slots=True)
class _HistogramHead:
    note: StoredText
    bins: Count
    not_finite: Count


@dataclass(frozen=True, slots=True)
class _ImageHead:
    note: StoredText
    shape: tuple[Count, ...]


def pack_media(item: MediaItem) -> tuple[MediaKind, str, bytes]:
    """Pack an item as its kind, a JSON head and a body.

    Raises:
        ValueError: The item is larger than a run stores.
    """
    if isinstance(item, LoggedText):
        data = item.text.encode("utf-8", "surrogatepass")
        if len(data) > MAX_TEXT_BYTES:
            raise ValueError(
                f"the text has {numbers.size(len(data))}, more than {numbers.size(MAX_TEXT_BYTES)}: log a part of it"
            )
        return item.kind, encode(_TextHead(item.note, len(data))), zlib.compress(data, _LEVEL)
    if isinstance(item, Histogram):
        data = np.concatenate([item.edges, item.counts]).astype("<f8").tobytes()
        _check_unpacked(len(data), "the histogram", "use fewer bins")
        head = encode(_HistogramHead(item.note, len(item.counts), item.not_finite))
        return item.kind, head, zlib.compress(data, _LEVEL)
    hint = "make it smaller, for example image[::2, ::2]"
    _check_unpacked(item.pixels.nbytes, "the image", hint)
    body = zlib.compress(item.pixels.tobytes(), _LEVEL)
    if len(body) > MAX_IMAGE_BYTES:
        raise ValueError(
            f"the image has {numbers.size(len(body))} compressed, more than {numbers.size(MAX_IMAGE_BYTES)}: {hint}"
        )
    return item.kind, encode(_ImageHead(item.note, item.pixels.shape)), body


def unpack_media(kind: MediaKind, head: str, body: bytes) -> MediaItem:
    """Unpack an item.

    Raises:
        ValueError: A value is missing or wrong, or the body is damaged.
    """
    if kind == "text":
        text = decode(head, _TextHead)
        return LoggedText(_decompressed(body, text.length, MAX_TEXT_BYTES).decode("utf-8", "surrogatepass"), text.note)
    if kind == "histogram":
        histogram = decode(head, _HistogramHead)
        edges = histogram.bins + bool(histogram.bins)
        numbers = np.frombuffer(_decompressed(body, 8 * (edges + histogram.bins)), "<f8").astype(np.float64)
        return Histogram(numbers[:edges], numbers[edges:], histogram.not_finite, histogram.note)
    image = decode(head, _ImageHead)
    pixels = np.frombuffer(_decompressed(body, math.prod(image.shape)), np.uint8)
    return LoggedImage(pixels.reshape(image.shape), image.note)


def check_position(step: int, name: str) -> None:
    """Check under which name and at which step an item is logged.

    Raises:
        ValueError: A run cannot store it there.
    """
    if not 0 <= step < 1 << 63:
        raise ValueError("a step is a whole number from 0")
    if not 0 < len(name.encode("utf-8")) <= MAX_NAME:
        raise ValueError(f"a name has 1 to {MAX_NAME} bytes")


def _check_unpacked(size: int, what: str, hint: str) -> None:
    if size > MAX_UNPACKED_BYTES:
        raise ValueError(f"{what} has {numbers.size(size)}, more than {numbers.size(MAX_UNPACKED_BYTES)}: {hint}")


def _decompressed(body: bytes, size: int, most: int = MAX_UNPACKED_BYTES) -> bytes:
    if size > most:
        raise ValueError(f"its size is {size} bytes")
    return decompressed(body, size)
