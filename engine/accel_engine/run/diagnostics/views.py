"""What can be shown of an example, or of a model's output for it: an image, a row of a table, text, a curve and so on.

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
    """An image, at most :data:`MAX_SIDE` pixels wide and high.

    Attributes:
        pixels: uint8 ``[height, width, channels]`` with 1, 3 or 4 channels.
    """

    pixels: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """The class of each pixel of an image, at most :data:`MAX_SIDE` pixels wide and high.

    Attributes:
        classes: uint8 ``[height, width]``; 255 for a pixel without a class.
    """

    classes: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Row:
    """Named values, at most :data:`MAX_COLUMNS`; numbers are formatted.

    Attributes:
        names: Names of the columns; indices from 0 where they have none.
        values: A text for each.
        columns: Number of columns of the data, of which these are the first.
    """

    names: tuple[str, ...]
    values: tuple[str, ...]
    columns: Count


@dataclass(frozen=True, slots=True)
class Text:
    """A text, or its first :data:`MAX_TEXT` characters.

    Attributes:
        text: As it is in the data; pass it through :func:`accel_engine.text.printable`.
        length: Characters of the whole text.
    """

    text: str
    length: Count


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A sequence of tokens, or its first :data:`MAX_TOKENS`, without padding at its end.

    Attributes:
        tokens: The text of each token, or its class's name; its number where it has no text.
        losses: Loss of each token, float32 ``[len(tokens)]``; NaN where a token does not count. Only of a model's
            output.
        length: Tokens of the whole sequence.
    """

    tokens: tuple[str, ...]
    length: Count
    losses: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One or more series of numbers, such as a window of a time series or a vector.

    Attributes:
        values: float32 ``[series, points]``: the first :data:`MAX_SERIES`, at evenly spaced points, at most
            :data:`MAX_POINTS`. May contain NaN.
        names: Name of each series; empty where they have none.
        points: Points of each series in the data.
        series: Number of series in the data.
    """

    values: npt.NDArray[np.float32]
    names: tuple[str, ...]
    points: Count
    series: Count


@dataclass(frozen=True, slots=True, eq=False)
class Spectrogram:
    """A sound.

    Attributes:
        levels: Loudness, uint8 ``[frequencies, times]`` from low to high frequencies, at most :data:`MAX_SIDE` each;
            0 is :attr:`decibels` below the loudest, which is 255.
        seconds: Duration; the number of values if the sample rate is unknown.
        highest: Highest frequency in Hz; 0 if the sample rate is unknown.
        decibels: Range of the levels.
    """

    levels: npt.NDArray[np.uint8]
    seconds: Number
    highest: Number
    decibels: Number = 80.0


@dataclass(frozen=True, slots=True)
class Parts:
    """Several views, for an example with several inputs.

    Attributes:
        names: Name of each.
        views: The views.
    """

    names: tuple[str, ...]
    views: tuple["Tagged[View]", ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of an example, at most :data:`MAX_COLUMNS`.

    Attributes:
        labels: Indices of the labels; for a model's output, those above its threshold, highest score first.
        scores: Probability of each; empty for the true labels.
    """

    labels: tuple[Count, ...]
    scores: tuple[Number, ...] = ()


View: TypeAlias = Image | Mask | Row | Text | Tokens | Curve | Spectrogram | Parts | Labels
