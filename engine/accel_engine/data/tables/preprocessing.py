"""Learns the preprocessing of a table from its training rows: statistics, categories and words; without TensorFlow."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import ColumnFormat, Progress, no_progress
from accel_engine.data.dataset import LazyRows
from accel_engine.data.standardization import Standardization
from accel_engine.data.tables.raw_inputs import JOINED_CATEGORIES, MISSING_TEXT, NUMBERS, RawInput, arrays_of
from accel_engine.errors import DataError
from accel_engine.words import numbers as words

MAX_CATEGORIES = 1000
"""Categories of a column beyond the most frequent ones are encoded as one, as are unknown ones."""

OTHER_VALUES = "other values"
"""The name of the category of all others."""

MAX_WORDS = 1000
"""Words of a text column beyond the most frequent ones are encoded as one, as are unknown ones."""

MANY_NUMBERS = 256
"""More numbers than this are one input of the preprocessing model, as Keras' functional models take seconds for a
thousand inputs, and more than in proportion for more of them."""

MANY_CATEGORIES = 256
"""The same for categories. Values that are not among the categories of their column are then no feature."""

_ROWS = 8192
"""Rows that are converted at a time."""

_PUNCTUATION = re.compile(r"""[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~']""")
"""Removed by Keras' ``TextVectorization``."""


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """The preprocessing of a table, from its training rows. Called, it makes a Keras model of it; see :meth:`model`."""

    columns: tuple[ColumnFormat, ...]
    """The columns of the inputs, in the order of the file."""
    scaling: Standardization
    """Means and standard deviations of the numbers."""
    numbers: tuple[str, ...]
    """Keys of the numbers."""
    precise: tuple[str, ...]
    """Keys of the numbers that float32 would lose digits of: the preprocessing model takes float64."""
    flagged: tuple[str, ...]
    """Keys of the numbers that are missing in some training rows: whether they are is a feature, too."""
    joined: tuple[str, ...]
    """Keys of the numbers that the preprocessing model takes as one matrix, also of numbers that do not vary; empty if
    each is an input."""
    vocabularies: Mapping[str, tuple[str, ...]]
    """Categories of each column, the most frequent first."""
    words: Mapping[str, tuple[str, ...]]
    """Words of each text column, the most frequent first."""
    names: Mapping[str, str]
    """The column of each key."""

    def __call__(self) -> Any:
        """The Keras model."""
        return self.model

    @cached_property
    def model(self) -> Any:
        """A Keras model from a dictionary of raw inputs, as in :meth:`raw`, to the matrix of :meth:`apply`."""
        return import_module("accel_engine.data.tables.preprocessing_model").build(self)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the matrix' columns, such as ``age``, ``age is missing``, ``job=clerk`` and ``review: good``."""
        encoded = []
        for key, texts in self._texts.items():
            mark = ": " if key in self.words else "="
            encoded += [f"{self.names[key]}{mark}{text}" for text in texts]
        flags = [f"{self.names[key]} is missing" for key in self.flagged]
        return (*(self.names[key] for key in self.numbers), *flags, *encoded)

    def original(self, matrix: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[Any]]:
        """Convert rows of the matrix back to the units and words of the table, by its columns.

        Args:
            matrix: ``[rows, features]``, as :attr:`feature_names` names them.

        Returns:
            Arrays ``[rows]``: numbers float64; categories, texts and numbers that may be missing as objects. Of a text,
            the words that count.
        """
        numbers, flags = len(self.numbers), len(self.flagged)
        values = self.scaling.restore_to_show(matrix[:, :numbers])
        is_missing = {key: matrix[:, numbers + index] > 0.5 for index, key in enumerate(self.flagged)}
        found: dict[str, npt.NDArray[Any]] = {}
        for column, key in zip(values.T, self.numbers, strict=True):
            found[self.names[key]] = column
            if key in is_missing:
                found[self.names[key]] = np.where(is_missing[key], "missing", column.astype(object))
        first = numbers + flags
        for key, texts in self._texts.items():
            block, others = matrix[:, first : first + len(texts)] > 0.5, "" if key in self.words else OTHER_VALUES
            found[self.names[key]] = np.array([", ".join(compress(texts, row)) or others for row in block], object)
            first += len(texts)
        return found

    def apply(
        self, inputs: Sequence[RawInput], rows: npt.NDArray[np.intp], progress: Progress = no_progress
    ) -> npt.NDArray[np.float32]:
        """Convert some rows, to the numbers that :attr:`model` gives.

        Args:
            inputs: The raw inputs, all rows.
            rows: Row numbers.
            progress: Reports the number of rows converted.

        Returns:
            float32 ``[len(rows), features]``, as :attr:`feature_names` names them.
        """
        matrix = np.zeros((len(rows), len(self.feature_names)), np.float32)
        values = {each.key: each.values for each in inputs}
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            self._fill(matrix[start : start + len(part)], {key: values[key][part] for key in self.names})
            progress(start + len(part), len(rows))
        return matrix

    def raw(self, inputs: Sequence[RawInput], rows: npt.NDArray[np.intp]) -> dict[str, npt.NDArray[Any]]:
        """The raw inputs of :attr:`model` for some rows: texts, numbers as float32, or float64 where that loses digits.

        Args:
            inputs: The raw inputs, all rows.
            rows: Row numbers.

        Returns:
            An array ``[len(rows), 1]`` for each input that varies, by key; :data:`NUMBERS` has :attr:`joined` ones, and
            :data:`JOINED_CATEGORIES` many categories.
        """
        precise, types = frozenset(self.precise), dict[str, str]()
        if self.joined:
            types[NUMBERS] = "float64" if precise else "float32"
        if self.joins_categories:
            types[JOINED_CATEGORIES] = "string"
        joined = {"number": bool(self.joined), "category": self.joins_categories, "text": False}
        for each in inputs:
            if each.key in self.names and not joined[each.kind]:
                number = "float64" if each.key in precise else "float32"
                types[each.key] = number if each.kind == "number" else "string"
        return arrays_of(inputs, types, rows)

    def _fill(self, matrix: npt.NDArray[np.float32], values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Fill zeros, ``[rows, features]``, from the raw values of the rows."""
        for dtype, places in self._places.items():
            if places:
                raw = np.stack([values[self.numbers[place]] for place in places], axis=1).astype(dtype)
                scaled = _standardized(raw, self.scaling.mean[places], self.scaling.scale[places])
                scaled[np.isnan(scaled)] = 0  # the mean
                matrix[:, places if len(places) < len(self.numbers) else slice(len(places))] = scaled
        first = len(self.numbers)
        for key in self.flagged:
            matrix[:, first] = np.isnan(values[key])
            first += 1
        rows = np.arange(len(matrix))
        for key, known in self._encoded.items():
            texts = values[key].tolist()
            if key in self.words:
                for row, text in zip(matrix, texts, strict=True):
                    row[[first + known.get(word, 0) for word in words_of(text)]] = 1
            elif self.joins_categories:
                found = np.array([known.get(text, 0) for text in texts])
                matrix[rows[found > 0], first - 1 + found[found > 0]] = 1
            else:
                matrix[rows, [first + known.get(text, 0) for text in texts]] = 1
            first += len(self._texts[key])

    @cached_property
    def _places(self) -> dict[type[np.floating[Any]], list[int]]:
        """Where the numbers are that are computed with as float32, and as float64."""
        precise = frozenset(self.precise)
        places: dict[type[np.floating[Any]], list[int]] = {np.float32: [], np.float64: []}
        for place, key in enumerate(self.numbers):
            places[np.float64 if key in precise else np.float32].append(place)
        return places

    @property
    def joins_categories(self) -> bool:
        """Whether all categories are one input of the model."""
        return len(self.vocabularies) > MANY_CATEGORIES

    @cached_property
    def _texts(self) -> dict[str, tuple[str, ...]]:
        """The texts of the features of each column of categories or words, in the order of the features."""
        texts = {key: ("other words", *words) for key, words in self.words.items()}
        others = () if self.joins_categories else (OTHER_VALUES,)
        for key, values in self.vocabularies.items():
            texts[key] = (*others, *(value or "missing" for value in values))
        # In the order of FeatureSpace, which does not encode joined categories.
        return {
            key: texts[key] for key in sorted(texts, key=lambda key: (self.joins_categories and key in self.words, key))
        }

    @cached_property
    def _encoded(self) -> dict[str, dict[str, int]]:
        """The place of each category or word, from 1, in its column; 0 is for all others."""
        known = {**self.vocabularies, **self.words}
        return {key: {text: place for place, text in enumerate(known[key], 1)} for key in self._texts}


@dataclass(frozen=True, slots=True, eq=False)
class LazyMatrix(LazyRows):
    """Rows of the matrix, converted when they are needed."""

    learned: Preprocessing
    """The preprocessing that converts them."""
    inputs: Sequence[RawInput]
    """The raw inputs, all rows."""
    rows: npt.NDArray[np.intp]
    """The rows' numbers."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(rows, features)``."""
        return len(self.rows), len(self.learned.feature_names)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32."""
        return np.dtype(np.float32)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32]:
        """Convert some rows."""
        return self.learned.apply(self.inputs, self.rows[rows])


def learn(
    inputs: Sequence[RawInput], rows: npt.NDArray[np.intp], columns: tuple[ColumnFormat, ...] = ()
) -> tuple[Preprocessing, tuple[str, ...]]:
    """Learn the preprocessing from the training rows.

    Args:
        inputs: The raw inputs, all rows.
        rows: The training rows.
        columns: The columns of the inputs, in the order of the file.

    Returns:
        The preprocessing, and the names of inputs that it leaves out, as they have one value in all training rows.

    Raises:
        DataError: All inputs have one value in all training rows.
    """
    flagged, constant = [], []
    numbers, names, vocabularies, words = dict[str, npt.NDArray[np.float64]](), {}, {}, {}
    for raw in inputs:
        values = raw.values[rows]
        if raw.kind == "number":
            known = values[~np.isnan(values)]
            is_flagged = len(known) < len(values)
            varies = bool(len(known)) and (bool(np.ptp(known)) or is_flagged)
            if varies:
                numbers[raw.key] = known
                flagged += [raw.key] if is_flagged else []
        elif raw.kind == "category":
            counts = Counter(values.tolist())
            varies = len(counts) > 1
            if varies:
                vocabularies[raw.key] = _most_frequent(counts, MAX_CATEGORIES)
        else:
            found = frequent_words(values.tolist(), MAX_WORDS)
            varies = bool(found)
            if varies:
                words[raw.key] = found
        if varies:
            names[raw.key] = raw.name
        else:
            constant.append(raw.name)
    if not names:
        raise DataError("each input column has the same value in all training rows: there is nothing to learn from")
    known_numbers = list(numbers.values())
    scaling = Standardization.of_columns(known_numbers)
    precise = tuple(compress(numbers, scaling.lost_by_float32(known_numbers)))
    joined = tuple(raw.key for raw in inputs if raw.kind == "number") if len(numbers) > MANY_NUMBERS else ()
    if joined and precise:  # a matrix has one type
        precise = tuple(numbers)
    preprocessing = Preprocessing(
        columns, scaling, tuple(numbers), precise, tuple(flagged), joined, vocabularies, words, names
    )
    return preprocessing, tuple(constant)


def _standardized(values: npt.NDArray[Any], mean: npt.NDArray[Any], scale: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Standardise to the last bit as :func:`accel_engine.data.standardization_model.standardized` does."""
    centre = mean.astype(np.float32).astype(np.float64)
    numbers = (-centre, 1 / scale, -(mean - centre) / scale)
    centred, factor, rest = (each.astype(np.float32).astype(values.dtype) for each in numbers)  # as layers keep them
    return (values + centred) * factor + rest


def _most_frequent(counts: Mapping[str, int], limit: int) -> tuple[str, ...]:
    """The most frequent texts; equally frequent ones in the order of the alphabet, whatever the order of the rows."""
    return tuple(sorted(counts, key=lambda text: (-counts[text], text))[:limit])


def unseen_notes(
    vocabularies: Mapping[str, Sequence[str]],
    inputs: Sequence[RawInput],
    rows: npt.NDArray[np.intp],
    file: Path | None = None,
) -> tuple[str, ...]:
    """Notes on categories that training has not seen.

    Args:
        vocabularies: The categories that it has seen, by key.
        inputs: The raw inputs, all rows.
        rows: The rows that count.
        file: Their file; ``None`` for the training file, or the only one.
    """
    notes, where = [], f"{file.name}: " if file else ""
    for raw in inputs:
        known = vocabularies.get(raw.key)
        if known is None:
            continue
        counts, seen = Counter(raw.values[rows].tolist()), frozenset(known)
        counts.pop(MISSING_TEXT, None)
        unseen = {value: count for value, count in counts.items() if value not in seen}
        if not unseen:
            continue
        number, example = sum(unseen.values()), max(unseen, key=lambda value: unseen[value])
        if len(known) >= MAX_CATEGORIES:
            notes.append(
                f"{where}{number:,} values of column {raw.name} are none of the {MAX_CATEGORIES:,} most frequent ones "
                f"of the training data, such as {example!r}: taken as other values"
            )
            continue
        said = f"{words.counted(number, 'value')} of column {raw.name} not in the training data, such as {example!r}"
        if len(unseen) == len(counts) and len(unseen) > 1:
            said = f"not one of {number:,} values of column {raw.name} is in the training data, such as {example!r}"
        notes.append(f"{where}{said}: taken as other values")
    return tuple(notes)


def words_of(text: str) -> list[str]:
    """The words of a text as ``TextVectorization`` finds them: without punctuation, between white space of ASCII.

    They are in lower case, but for letters outside ASCII.
    """
    return [word.decode() for word in _PUNCTUATION.sub("", text.encode().lower().decode()).encode().split()]


def frequent_words(texts: Iterable[str | bytes], limit: int, ngrams: int = 1) -> tuple[str, ...]:
    """The words in most texts, as ``TextVectorization`` finds them, the most frequent first.

    A word that only one text has tells nothing about others, and is left out.

    Args:
        texts: The texts.
        limit: Number of words at most.
        ngrams: Number of consecutive words that count as a word, too.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        found = words_of(text.decode() if isinstance(text, bytes) else text)
        counts.update(
            {
                " ".join(found[start : start + size])
                for size in range(1, ngrams + 1)
                for start in range(len(found) - size + 1)
            }
        )
    return _most_frequent({word: count for word, count in counts.items() if count > 1}, limit)
