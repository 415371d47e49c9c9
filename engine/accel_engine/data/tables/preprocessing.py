"""What is learned from the training rows of a table: statistics, categories and words; without TensorFlow."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.standardization import Standardization
from accel_engine.data.tables.raw_inputs import MISSING_TEXT, RawInput
from accel_engine.errors import DataError

MAX_CATEGORIES = 1000
"""Categories of a column beyond the most frequent ones are encoded as one, as are unknown ones."""

MAX_WORDS = 1000
"""Words of a text column beyond the most frequent ones are encoded as one, as are unknown ones."""

_PUNCTUATION = re.compile(r"""[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~']""")
"""Removed by Keras' ``TextVectorization``."""


@dataclass(frozen=True, slots=True, eq=False)
class Preprocessing:
    """What was learned from the training rows.

    Attributes:
        scaling: Means and standard deviations of the numbers.
        numbers: Their keys.
        precise: Keys of the numbers that float32 would lose digits of: the preprocessing model takes float64.
        flagged: Keys of the numbers that are missing in some training rows: whether they are is a feature, too.
        vocabularies: Categories of each column, the most frequent first.
        words: Words of each text column, the most frequent first.
        names: The column of each key.
    """

    scaling: Standardization
    numbers: tuple[str, ...]
    precise: tuple[str, ...]
    flagged: tuple[str, ...]
    vocabularies: Mapping[str, tuple[str, ...]]
    words: Mapping[str, tuple[str, ...]]
    names: Mapping[str, str]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the matrix' columns, such as ``age``, ``age is missing``, ``job=clerk`` and ``review: good``."""
        encoded = []
        for key in sorted([*self.vocabularies, *self.words]):  # the order of FeatureSpace
            name = self.names[key]
            if key in self.words:
                encoded += [f"{name}: {word}" for word in ("other words", *self.words[key])]
            else:
                values = ("other values", *(value or "missing" for value in self.vocabularies[key]))
                encoded += [f"{name}={value}" for value in values]
        flags = [f"{self.names[key]} is missing" for key in self.flagged]
        return (*(self.names[key] for key in self.numbers), *flags, *encoded)

    def original(self, matrix: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[Any]]:
        """What rows of the matrix are in the units and words of the table, by its columns.

        Args:
            matrix: ``[rows, features]``, as :attr:`feature_names` names them.

        Returns:
            Arrays ``[rows]``: numbers float64; categories, texts and numbers that may be missing as objects. Of a text,
            the words that count.
        """
        numbers, flags = len(self.numbers), len(self.flagged)
        values = self.scaling.restore(matrix[:, :numbers])
        is_missing = {key: matrix[:, numbers + index] > 0.5 for index, key in enumerate(self.flagged)}
        found: dict[str, npt.NDArray[Any]] = {}
        for column, key in zip(values.T, self.numbers, strict=True):
            found[self.names[key]] = column
            if key in is_missing:
                found[self.names[key]] = np.where(is_missing[key], "missing", column.astype(object))
        first = numbers + flags
        for key in sorted([*self.vocabularies, *self.words]):
            own = self.words.get(key) or tuple(each or "missing" for each in self.vocabularies[key])
            names = np.array([f"other {'words' if key in self.words else 'values'}", *own], object)
            block = matrix[:, first : first + len(names)] > 0.5
            found[self.names[key]] = np.array([", ".join(names[row]) for row in block], object)
            first += len(names)
        return found


def learn(inputs: Sequence[RawInput], rows: npt.NDArray[np.intp]) -> tuple[Preprocessing, tuple[str, ...]]:
    """Learn the preprocessing from the training rows.

    Args:
        inputs: The raw inputs, all rows.
        rows: The training rows.

    Returns:
        The preprocessing, and the names of inputs that it leaves out, as they have one value in all training rows.

    Raises:
        DataError: All inputs have.
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
            found = _most_frequent_words(values.tolist())
            varies = bool(found)
            if varies:
                words[raw.key] = found
        if varies:
            names[raw.key] = raw.name
        else:
            constant.append(raw.name)
    if not names:
        raise DataError("each input column has the same value in all training rows: there is nothing to learn from")
    columns = list(numbers.values())
    scaling = Standardization.of_columns(columns)
    preprocessing = Preprocessing(
        scaling,
        tuple(numbers),
        tuple(compress(numbers, scaling.lost_by_float32(columns))),
        tuple(flagged),
        vocabularies,
        words,
        names,
    )
    return preprocessing, tuple(constant)


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
        file: Their file; ``None`` for the training file, in which all rows of a category may be for validation.

    Raises:
        DataError: Training has seen no value of a column of another file.
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
        if len(unseen) == len(counts) and file is not None:
            some = ", ".join(value for value in known[:5] if value != MISSING_TEXT)
            raise DataError(
                f"{file}: no value of column {raw.name} is in the training data, such as {example!r}: that has {some}"
                f"{', …' if len(known) > 5 else ''}; leave cells empty to use the rows without them"
            )
        notes.append(
            f"{where}{number:,} values of column {raw.name} are not in the training data, such as {example!r}: "
            "taken as other values"
        )
    return tuple(notes)


def standardize_text(text: str) -> str:
    """A text in lower case without punctuation, as ``TextVectorization`` makes it: only letters of ASCII change."""
    return _PUNCTUATION.sub("", text.encode().lower().decode())


def _most_frequent_words(texts: Iterable[str]) -> tuple[str, ...]:
    """The words in most texts, as ``TextVectorization`` finds them.

    A word that only one text has tells nothing about others.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(standardize_text(text).split()))
    return _most_frequent({word: count for word, count in counts.items() if count > 1}, MAX_WORDS)
