"""Views of an example, or of a model's output for it: an image, a row of a table, text, a curve and so on.

Each is bounded in size, so that a run's diagnostics stay below a few megabytes.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.json_values import Count, Number, OfHook

MAX_SIDE = 64
"""Pixels of the longer side of an image or a mask, and of each side of a spectrogram."""

MAX_COLUMNS = 64
"""Columns of a row."""

MAX_TEXT = 1000
"""Characters of a text."""

MAX_TOKENS = 256
"""Tokens of a sequence."""

MAX_SERIES = 8
"""Series of a curve."""

MAX_POINTS = 512
"""Points of each series of a curve."""


T = TypeVar("T")

if TYPE_CHECKING:
    Tagged = Annotated[T, "tagged"]
else:

    class Tagged(Generic[T], metaclass=OfHook):
        """One of several classes, told apart by ``type``, its name; ``None`` if this program does not know it."""


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """An image, at most :data:`MAX_SIDE` pixels wide and high."""

    pixels: npt.NDArray[np.uint8]
    """uint8 ``[height, width, channels]`` with 1, 3 or 4 channels."""


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """The class of each pixel of an image, at most :data:`MAX_SIDE` pixels wide and high."""

    classes: npt.NDArray[np.uint8]
    """uint8 ``[height, width]``; 255 for a pixel without a class."""


@dataclass(frozen=True, slots=True)
class Row:
    """Named values, at most :data:`MAX_COLUMNS`; numbers are formatted."""

    names: tuple[str, ...]
    """Names of the columns; indices from 0 where they have none."""
    values: tuple[str, ...]
    """A text for each."""
    columns: Count
    """Number of columns of the data, of which these are the first."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text, or its first :data:`MAX_TEXT` characters."""

    text: str
    """As it is in the data; pass it through :func:`accel_engine.text.printable`."""
    length: Count
    """Characters of the whole text."""


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A sequence of tokens, or its first :data:`MAX_TOKENS`, without padding at its end."""

    tokens: tuple[str, ...]
    """The text of each token, or its class's name; its number where it has no text."""
    length: Count
    """Tokens of the whole sequence."""
    losses: npt.NDArray[np.float32] | None = None
    """Loss of each token, float32 ``[len(tokens)]``; NaN where a token does not count. Only of a model's output."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One or more series of numbers, such as a window of a time series or a vector."""

    values: npt.NDArray[np.float32]
    """float32 ``[series, points]``: the first :data:`MAX_SERIES`, at evenly spaced points, at most :data:`MAX_POINTS`.
    May contain NaN."""
    names: tuple[str, ...]
    """Name of each series; empty where they have none."""
    points: Count
    """Points of each series in the data."""
    series: Count
    """Number of series in the data."""


@dataclass(frozen=True, slots=True, eq=False)
class Spectrogram:
    """A sound."""

    levels: npt.NDArray[np.uint8]
    """Loudness, uint8 ``[frequencies, times]`` from low to high frequencies, at most :data:`MAX_SIDE` each; 0 is
    :attr:`decibels` below the loudest, which is 255."""
    seconds: Number
    """Duration; the number of values if the sample rate is unknown."""
    highest: Number
    """Highest frequency in Hz; 0 if the sample rate is unknown."""
    decibels: Number = 80.0
    """Range of the levels."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Several views, for an example with several inputs."""

    names: tuple[str, ...]
    """Name of each."""
    views: tuple["Tagged[View]", ...]
    """The views."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of an example, at most :data:`MAX_COLUMNS`."""

    labels: tuple[Count, ...]
    """Indices of the labels; for a model's output, those above its threshold, highest score first."""
    scores: tuple[Number, ...] = ()
    """Probability of each; empty for the true labels."""


View: TypeAlias = Image | Mask | Row | Text | Tokens | Curve | Spectrogram | Parts | Labels
