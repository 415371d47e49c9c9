"""Makes views of examples: what is shown of an input, from the kind of the data and the shapes of its arrays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import Structure, named_leaves
from accel_engine.run.diagnostics.views import (
    MAX_COLUMNS,
    MAX_POINTS,
    MAX_SERIES,
    MAX_SIDE,
    MAX_TEXT,
    MAX_TOKENS,
    Curve,
    Parts,
    Row,
    Spectrogram,
    Text,
    Tokens,
    View,
)
from accel_engine.training.evaluation.reports.pixels import image_views, is_picture, pixel_range
from accel_engine.words import numbers

Array = npt.NDArray[Any]

_MAX_PARTS = 4
"""Views of the inputs of one example, besides single values."""


@dataclass(frozen=True, slots=True)
class InputViews:
    """Makes views of the inputs of examples."""

    kind: str
    """The kind of an example; see :attr:`accel_engine.data.dataset.Dataset.kind`."""
    feature_names: tuple[str, ...] = ()
    """Names of the columns of the inputs."""
    vocabulary: tuple[str, ...] = ()
    """The text of each token."""
    sample_rate: int = 0
    """Samples per second of audio."""
    limits: tuple[float, float] | None = None
    """Raw values that are black and white in images of a single input; ``None`` to take them from the images."""
    original: Callable[[Array], Mapping[str, Array]] | None = None
    """Gives rows of the inputs in the units and words of the user's table; ``None`` to show them as is."""

    @classmethod
    def of(cls, dataset: Dataset, limits: tuple[float, float] | None = None) -> "InputViews":
        """The views of a dataset's examples."""
        return cls(
            dataset.kind, dataset.feature_names, dataset.vocabulary, dataset.sample_rate, limits, dataset.original
        )

    def __call__(self, inputs: Structure) -> list[View | None]:
        """Make a view of each example; ``None`` where there is nothing to show.

        Args:
            inputs: A structure of arrays ``[examples, ...]``, before scaling.
        """
        leaves = [(name, np.asarray(leaf)) for name, leaf in named_leaves(inputs)]
        if len(leaves) == 1:
            return self._views(leaves[0][1])
        values = {name: leaf for name, leaf in leaves if _is_value(leaf)}
        parts = [(name, self._views(leaf)) for name, leaf in leaves if not _is_value(leaf)][:_MAX_PARTS]
        if values:
            parts.insert(0, ("", row_views(list(values.values()), tuple(values))))
        if len(parts) == 1:
            return parts[0][1]
        return [_parts([(name, views[index]) for name, views in parts]) for index in range(len(leaves[0][1]))]

    def _views(self, x: Array) -> list[View | None]:
        shape = x.shape[1:]
        if self.original is not None and len(shape) == 1:
            columns = self.original(x)
            return row_views(list(columns.values()), tuple(columns))
        if x.dtype.kind in "OUS":
            if x.size > len(x):
                return row_views(list(x.reshape(len(x), -1).T), self.feature_names)
            return [_text_view(value) for value in x.reshape(len(x))]
        if self.kind == "audio" and len(shape) <= 2 and max(shape, default=0) > 1:
            return [spectrogram(each, self.sample_rate) for each in x]
        if x.dtype.kind in "iu" and len(shape) == 1 and (self.vocabulary or self.kind in ("text", "tokens")):
            return [tokens_view(each, self.vocabulary) for each in x]
        if is_picture(x, self.kind):
            return list(image_views(x, self.limits or pixel_range(x)))
        if len(shape) > 2:
            return [None] * len(x)
        if self.kind == "table" or (x[:1].size <= MAX_COLUMNS and len(shape) < 2):
            return row_views(list(x.reshape(len(x), -1).T), self.feature_names)
        return [curve_view(each, self.feature_names) for each in x]


def row_views(columns: Sequence[Array], names: Sequence[str]) -> list[View | None]:
    """A row of each example.

    Args:
        columns: Arrays of one value for each example.
        names: Their names; indices if there are not as many.
    """
    if len(names) != len(columns):
        names = [str(index) for index in range(len(columns))]
    shown = [column.reshape(len(column)) for column in columns[:MAX_COLUMNS]]
    return [
        Row(tuple(names[:MAX_COLUMNS]), tuple(_example_text(column[index]) for column in shown), len(columns))
        for index in range(len(columns[0]) if columns else 0)
    ]


def _example_text(value: Any) -> str:
    """A single value as text, at most 100 characters; a number in six digits, or all before the decimal point."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, float | np.floating):
        return numbers.value(float(value))
    return str(value)[:100]


def _text_view(value: Any) -> Text:
    """A text, which may be bytes in UTF-8."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return Text(text[:MAX_TEXT], len(text))


def token_text(token: int, names: Sequence[str]) -> str:
    """The text of a token, or its number."""
    return names[token][:40] if 0 <= token < len(names) else str(token)


def tokens_view(tokens: Array, names: Sequence[str], losses: Array | None = None, length: int | None = None) -> Tokens:
    """A sequence of tokens.

    Args:
        tokens: Integers ``[length]``.
        names: The text of each.
        losses: Loss of each token, NaN where it does not count.
        length: Number of tokens without padding; by default, zeros at the end are padding.
    """
    if length is None:
        length = int(np.flatnonzero(tokens)[-1]) + 1 if tokens.any() else 0
    shown = tuple(token_text(int(token), names) for token in tokens[: min(length, MAX_TOKENS)])
    return Tokens(shown, length, None if losses is None else losses[: len(shown)].astype(np.float32))


def curve_view(values: Array, names: Sequence[str]) -> Curve:
    """One or more series.

    Args:
        values: ``[points]`` or ``[points, series]``.
        names: Names of the series; none if there are not as many.
    """
    series = values.reshape(len(values), -1).T.astype(np.float32)
    count, points = series.shape
    if points > MAX_POINTS:
        series = series[:, np.linspace(0, points - 1, MAX_POINTS).astype(np.intp)]
    shown = tuple(names[:MAX_SERIES]) if len(names) == count else ()
    return Curve(np.ascontiguousarray(series[:MAX_SERIES]), shown, points, count)


def _is_value(x: Array) -> bool:
    """Whether an array has a single value for each example, other than a text."""
    return x.size == len(x) and not (x.dtype.kind in "OUS" and max((len(value) for value in x.flat), default=0) > 40)


def _parts(parts: list[tuple[str, View | None]]) -> View | None:
    known = [(name, view) for name, view in parts if view is not None]
    return Parts(tuple(name for name, _ in known), tuple(view for _, view in known)) if known else None


FRAME = 512
"""Samples of a frame; fewer for short sounds."""

DECIBELS = 80.0
"""Range of the levels below the loudest."""


def spectrogram(sound: npt.NDArray[Any], sample_rate: int) -> Spectrogram:
    """Power of a sound by frequency and time: Hann windows that overlap by half, averaged to 64 x 64.

    Args:
        sound: Samples ``[samples]`` or ``[samples, channels]``, whose first channel is used; NaN is silence.
        sample_rate: Samples per second; 0 if unknown.
    """
    samples = np.nan_to_num(sound.reshape(len(sound), -1)[:, 0].astype(np.float32))
    frame = min(FRAME, max(2, len(samples) // 2 * 2))
    starts = np.arange(0, max(len(samples) - frame, 0) + 1, max(1, frame // 2))
    columns = min(MAX_SIDE, len(starts))
    edges = np.linspace(0, len(starts), columns + 1).astype(np.intp)
    window = np.hanning(frame).astype(np.float32)
    padded = np.pad(samples, (0, max(0, frame - len(samples))))
    bands = np.linspace(0, frame // 2 + 1, min(MAX_SIDE, frame // 2 + 1) + 1).astype(np.intp)[:-1]
    sizes = np.diff([*bands, frame // 2 + 1])
    power = np.empty((len(bands), columns), np.float32)
    for column in range(columns):  # a minute of sound would be hundreds of megabytes at once
        frames = padded[starts[edges[column] : edges[column + 1], np.newaxis] + np.arange(frame)] * window
        mean = np.mean(np.abs(np.fft.rfft(frames, axis=1)) ** 2, axis=0)
        power[:, column] = np.add.reduceat(mean, bands) / sizes
    loudest = max(float(power.max()), 1e-20)
    levels = 10 * np.log10(np.maximum(power / loudest, 1e-30)) / DECIBELS + 1
    return Spectrogram(
        np.rint(np.clip(levels, 0, 1) * 255).astype(np.uint8),
        len(samples) / (sample_rate or 1),
        sample_rate / 2,
        DECIBELS,
    )
