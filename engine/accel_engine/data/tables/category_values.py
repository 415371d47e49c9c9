"""Columns of categories and texts, and the normal form of their values, whatever file has them; without TensorFlow.

A CSV file writes texts, Parquet stores types, and JSON has a few: 3, 3.0 and "3" are one category in all of them, as
are true, True and 1 where the other value is false.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import ColumnFormat
from accel_engine.data.tables.columns import TableColumn

FEW_VALUES = 20
"""The most different values with which a column of texts is a category, unless all of them are numbers or dates."""

TEXT_WORDS = 3
"""The least words that texts have on average, if most of them differ."""

MANY_VALUES = 100
"""A column with more values than this, most of which differ, has names or keys rather than categories."""

MOST = 0.5
"""Most values of a column differ if more of them do than this share."""

_DECIMAL_COMMA = re.compile(r"^([+-]?\d+),(\d+)$")

TRUTHS = ({"false", "true"}, {"no", "yes"}, {"f", "t"}, {"n", "y"}, {"0", "1"})
"""Words for false and true, in lower case; in the order of the alphabet, the one for false comes first."""

_SPELLINGS = 16
"""A column of true and false has no more different texts."""

_WORDS = {word: word == max(pair) for pair in TRUTHS for word in pair}
"""Whether a word, in lower case, means true."""

_WHOLE = re.compile(r"([+-]?)(0|[1-9]\d*)\.0*")
_FRACTION = re.compile(r"[+-]?(?:0|[1-9]\d*)\.\d*[1-9]0+")
_FLOAT = re.compile(r"-?\d(\.\d+)?e\+\d\d+")
"""A whole number as Python and pandas write a large float."""

_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00(:00(\.0+)?)?")


def normal_texts(values: Iterable[Any], *, as_spelled: bool = False) -> list[str]:
    """The normal form of values.

    Whole numbers have all their digits and no point; other numbers no more digits than tell them apart. Leading zeros
    stay, as in 007, since only codes have them.

    Args:
        values: Texts, numbers, booleans and dates, without ``None``.
        as_spelled: Whether texts stay as they are; see :func:`differ_by_zeros`.
    """
    return [
        (value if as_spelled else _normal(value)) if isinstance(value, str) else _text_of(value) for value in values
    ]


def differ_by_zeros(texts: Iterable[str]) -> bool:
    """Whether texts differ by trailing zeros of a fraction alone, as the versions 1.1 and 1.10 do."""
    distinct = set(texts)
    fractions = [text for text in distinct if "." in text and _FRACTION.fullmatch(text)]
    short = [_normal(text) for text in fractions]
    return len(set(short)) < len(short) or not distinct.isdisjoint(short)


def truth_words(texts: Iterable[str]) -> tuple[str, str] | None:
    """The words for false and true of a column; ``None`` if it has others, or one of them only.

    true and false are in lower case, as each program spells them in its own way, and so are words in several cases.
    """
    spelled = set(texts)
    if len(spelled) > _SPELLINGS:
        return None
    found = {text.lower(): text for text in spelled}
    if found.keys() not in TRUTHS:
        return None
    false, true = sorted(found)
    return (found[false], found[true]) if len(spelled) == len(found) and true != "true" else (false, true)


def in_words(texts: Iterable[str], words: tuple[str, ...]) -> list[str]:
    """Texts with a column's own words for false and true, if it has any, in place of other ones; others stay."""
    if not words:
        return list(texts)
    return [text if (truth := truth_of(text)) is None else words[truth] for text in texts]


def truth_of(text: str) -> bool | None:
    """Whether a text means true; ``None`` if it means neither true nor false."""
    return _WORDS.get(text.lower())


def default_words(texts: Iterable[str]) -> tuple[str, str]:
    """The words for false and true of a column that is declared a boolean, perhaps with one of the two only."""
    lowered = {text.lower() for text in texts}
    false, true = sorted(next((pair for pair in TRUTHS if lowered & pair), TRUTHS[0]))
    return false, true


def _text_of(value: Any) -> str:
    """The normal form of a value that is not a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, float | np.floating):
        return str(int(value)) if np.isfinite(value) and value == int(value) else str(value)
    if isinstance(value, datetime):
        return _normal(value.replace(tzinfo=None).isoformat(sep=" "))
    return value.isoformat() if isinstance(value, date) else str(value)


def _normal(text: str) -> str:
    """The normal form of a text."""
    if "." not in text and "e+" not in text and "00:00" not in text:  # most texts, of which there may be millions
        return text
    if found := _WHOLE.fullmatch(text):
        return f"-{found[2]}" if found[1] == "-" and found[2] != "0" else found[2]
    if _FRACTION.fullmatch(text):
        return text.rstrip("0").removeprefix("+")
    if _FLOAT.fullmatch(text) and (number := float(text)) == int(number):
        return str(int(number))
    return found[1] if (found := _MIDNIGHT.fullmatch(text)) else text


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A column as its different values and their places (a dictionary encoding)."""

    texts: Any
    """The different values, in the order of their first occurrence; an Arrow array."""
    codes: npt.NDArray[np.integer[Any]]
    """The place of each row's value, ``[rows]``; the number of values where it is missing."""
    counts: npt.NDArray[np.integer[Any]]
    """How often each occurs."""


def encoded_column(cells: Any) -> Encoded:
    """Encode an Arrow column by its different values."""
    import pyarrow as pa

    is_half = cells.type == pa.float16()  # which has no encoding
    array = (cells.cast(pa.float32()) if is_half else cells).combine_chunks().dictionary_encode()
    if hasattr(array, "combine_chunks"):  # a chunked array of several chunks
        array = array.unify_dictionaries().combine_chunks()
    size = len(array.dictionary)
    codes = array.indices.fill_null(size).to_numpy(zero_copy_only=False)
    texts = array.dictionary.cast(cells.type) if is_half else array.dictionary
    return Encoded(texts, codes, np.bincount(codes, minlength=size + 1)[:size])


def kind_of_texts(distinct: Any, known: int) -> str:
    """The kind of a column of different texts, by the number of its values."""
    import pyarrow.compute as pc

    if len(distinct) <= 2 * FEW_VALUES and (words := truth_words(distinct.to_pylist())) and words[0] != "0":
        return "boolean"
    most_differ = len(distinct) > MOST * known
    words_of_a_text = 1 + pc.mean(pc.count_substring_regex(distinct, r"\s+")).as_py()
    if words_of_a_text >= TEXT_WORDS and (most_differ or len(distinct) > 10 * MANY_VALUES):
        return "text"
    return "key" if most_differ and len(distinct) > MANY_VALUES else "category"


def category_column(
    name: str, encoded: Encoded, missing: int, kind: str, known: ColumnFormat | None, *, has_commas: bool
) -> TableColumn:
    """A column of texts. Equal texts are one Python object, so that categories take little memory.

    Args:
        name: Its name.
        encoded: Its values.
        missing: Number of missing values.
        kind: ``category``, ``boolean``, ``text`` or ``key``.
        known: The training file's column; ``None`` for the training file itself.
        has_commas: Whether numbers may have decimal commas.
    """
    distinct = _distinct(encoded.texts, has_commas=has_commas)
    as_spelled, words = False, tuple[str, ...]()
    if kind != "text":
        texts = [value for value in distinct if isinstance(value, str)]
        as_spelled = known.as_spelled if known else differ_by_zeros(texts)
        distinct = normal_texts(distinct, as_spelled=as_spelled)
        words = known.truth_words if known else truth_words(distinct) or ()
        if kind == "boolean" and not known:
            words = words or default_words(distinct)
        distinct = in_words(distinct, words)
    else:
        distinct = normal_texts(distinct, as_spelled=True)
    categories = tuple[str, ...]()
    if kind in ("category", "boolean"):
        used = set(distinct)
        categories = tuple(word for word in words if word in used) if used <= set(words) else tuple(sorted(used))
    values = np.array([*distinct, None], object)[encoded.codes]
    return TableColumn(name, kind, values, missing, categories, words, as_spelled)


def _distinct(dictionary: Any, *, has_commas: bool) -> list[Any]:
    """The different values, as Python has them."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_float32(dictionary.type) or types.is_float16(dictionary.type):
        return list(dictionary.to_numpy(zero_copy_only=False))  # which print without digits of a float64
    if types.is_timestamp(dictionary.type) and dictionary.type.tz:
        dictionary = dictionary.cast(pa.timestamp("us", "UTC"))
    values: list[Any] = dictionary.to_pylist()
    if has_commas and types.is_string(dictionary.type):
        return [_DECIMAL_COMMA.sub(r"\1.\2", value) for value in values]
    return values
