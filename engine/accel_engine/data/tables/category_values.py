"""The normal form of categories: a text for each value, whatever file has it; without TensorFlow.

A CSV file writes texts, Parquet stores types, and JSON has a few: 3, 3.0 and "3" are one category in all of them, as
are true, True and 1 where the other value is false.
"""

import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

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
    """The normal form of a value that is no text."""
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
