"""Reads numbers as people write them: with decimal commas, groups of digits, currencies, percent and signs behind.

All numbers of a column are read in one notation, the one that reads most of its values. Without TensorFlow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import NO_GROUPS, PERCENT, DataOptions, Notation
from accel_engine.data.tables.category_values import truth_of
from accel_engine.data.tables.columns import spread_texts
from accel_engine.errors import PlanError

DECIMALS = (".", ",")
"""Marks before a fraction."""

THOUSANDS = (",", ".", "'", " ", "_")
"""Marks between groups of digits."""

_CURRENCY = (
    r"(?:[A-Z]{0,3}[$€£¥₹₽₩₺₴₫฿₪₦₱₿¢]|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|RMB|RON"
    r"|RUB|SEK|SGD|THB|TRY|USD|ZAR|Fr\.|Rs\.?|RM|Ft|kr\.?|zł|Kč)"
)
_PARTS = (
    rf"^(?P<opened>\()? ?(?P<first>[+-])? ?(?P<before>{_CURRENCY}|%)? ?(?P<second>[+(-])? ?"
    r"(?P<body>[.,]?\d(?:[\d.,'_ ]*[\d.,])?)(?P<exponent>[eE][+-]?\d+)?"
    rf" ?(?P<after>{_CURRENCY}|%)? ?(?P<last>[+-])?(?P<closed>\))?$"
)
_SAME = (("[\u2212\u2012\u2013\u2014]", "-"), ("[\u00a0\u2007\u2009\u202f]", " "), ("[\u2019\u02bc\u00b4`]", "'"))
"""Other characters for minus signs, spaces and apostrophes."""

_SIGNS = (("first", "-"), ("second", "-"), ("last", "-"), ("opened", "("), ("second", "("))
"""Parts that mean a number below zero, and what they are; programs write only the first two."""

_INFINITE = r"^[+-]?(?i:inf|infinity)$"

_ROUND = r"(\d)[.,]-{1,2}"
"""Instead of a fraction, such as 12.- in Switzerland."""

_SAMPLE = 1000
"""Texts that are looked at first, from all parts: if hardly any is a number, the others are not tried."""

_HEAD = 100
"""The same, of numbers whose mark may be ambiguous."""

_FEW = 0.05
"""The share of numbers among these that is hardly any."""

_AMBIGUOUS = r"^[+-]?[1-9]\d{0,2}[.,]\d{3}$"
"""A fraction of three digits, or thousands."""


def wanted_notation(options: DataOptions) -> Notation:
    """The notation that a plan asks for.

    Raises:
        PlanError: Both marks are the same.
    """
    decimal = "" if options.decimal == "auto" else options.decimal
    thousands = {"auto": "", "space": " "}.get(options.thousands, options.thousands)
    if decimal and decimal == thousands:
        raise PlanError("thousands", options.thousands, "is the decimal mark")
    return Notation(decimal, thousands)


@dataclass(frozen=True, slots=True, eq=False)
class NumberTexts:
    """The values of texts as numbers, and their notation."""

    values: npt.NDArray[np.float64]
    """float64 ``[texts]``, NaN for texts that are not numbers."""
    notation: Notation = Notation()  # noqa: RUF009 (frozen)
    """How they are written."""
    is_ambiguous: bool = False
    """Whether all that have a mark could have thousands instead of a fraction, or the other way round."""


def read_numbers(
    texts: Any, counts: npt.NDArray[np.integer[Any]], wanted: Notation, comma: bool | None, *, truths: bool
) -> NumberTexts:
    """Read texts as numbers in the notation that reads most of them.

    Args:
        texts: An Arrow array of different texts without blanks around them.
        counts: How often each occurs, ``[texts]``.
        wanted: What is known of the notation.
        comma: Whether a comma is a decimal comma where each notation reads as many; ``None`` if it is one only where
            no number has a point.
        truths: Whether words for true and false are 1 and 0.
    """
    import pyarrow.compute as pc

    values = np.full(len(texts), np.nan)
    if truths:
        known = [truth_of(text) for text in texts.to_pylist()]
        values = np.array([np.nan if truth is None else float(truth) for truth in known])
    elif _are_none(spread_texts(texts, _SAMPLE), is_sampled=len(texts) > _SAMPLE):
        return NumberTexts(values)
    same = _in_same_characters(texts)
    parts = _parts(texts)
    notation, is_read = _best_notation(pc.struct_field(parts, "body"), counts, wanted, comma)
    unit, has_unit = _unit(parts, counts * is_read, wanted.unit)
    numbers = _values(parts, notation, is_read & has_unit)
    is_infinite = pc.match_substring_regex(same, _INFINITE)
    numbers[is_infinite.to_numpy(zero_copy_only=False)] = pc.filter(same, is_infinite).cast("float64").to_numpy()
    has_signs = bool((_is_marked(parts, _SIGNS[2:]) & is_read).any())
    found = replace(_used(parts, notation, is_read), unit=unit, has_signs=has_signs)
    return NumberTexts(np.where(np.isnan(numbers), values, numbers), found, is_ambiguous(same))


def _are_none(texts: Any, *, is_sampled: bool) -> bool:
    """Whether none of some texts is a number or, if there are others, hardly any is."""
    import pyarrow.compute as pc

    if _parts(texts).null_count < (1 - _FEW * is_sampled) * len(texts):
        return False
    return not pc.any(pc.match_substring_regex(texts, _INFINITE)).as_py()


def is_ambiguous(texts: Any) -> bool:
    """Whether a mark before three digits, which all texts with a mark have, may be before a fraction or thousands."""
    import pyarrow.compute as pc

    count = 0
    for some in (texts.slice(0, _HEAD), texts):  # most columns have another number among the first ones
        for mark in DECIMALS:
            marked = pc.filter(some, pc.match_substring(some, mark))
            if len(marked) and not pc.all(pc.match_substring_regex(marked, _AMBIGUOUS)).as_py():
                return False
            count += len(marked)
    return count > 0


def _in_same_characters(texts: Any) -> Any:
    import pyarrow.compute as pc

    for pattern, replacement in _SAME:
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    return texts


def _parts(texts: Any) -> Any:
    """The parts of numbers, a struct of texts; missing for texts that are not numbers."""
    import pyarrow.compute as pc

    round_numbers = pc.replace_substring_regex(_in_same_characters(texts), _ROUND, r"\1")
    return pc.extract_regex(round_numbers, pattern=_PARTS)


def _best_notation(
    body: Any, counts: npt.NDArray[np.integer[Any]], wanted: Notation, comma: bool | None
) -> tuple[Notation, npt.NDArray[np.bool_]]:
    """The notation that reads most values, and which texts it reads."""
    import pyarrow.compute as pc

    if comma is None:
        comma = bool(pc.any(pc.match_substring(body, ",")).as_py())
    best, best_read, most = Notation(), np.zeros(len(body), bool), -1
    for candidate in _candidates(wanted, comma=comma):
        is_read = pc.fill_null(pc.match_substring_regex(body, _pattern(candidate)), False)
        is_read = is_read.to_numpy(zero_copy_only=False)
        count = int(counts[is_read].sum())
        if count > most:
            best, best_read, most = candidate, is_read, count
        if count == counts.sum():
            break
    return best, best_read


def _candidates(wanted: Notation, *, comma: bool) -> Sequence[Notation]:
    """The notations to try, in the order of preference."""
    decimals = (wanted.decimal,) if wanted.decimal else DECIMALS[::-1] if comma else DECIMALS
    marks = {"": THOUSANDS, NO_GROUPS: ("\0",)}.get(wanted.thousands, (wanted.thousands,))
    return [
        Notation(decimal, mark)
        for own in (marks[:2], marks[2:])
        for decimal in decimals
        for mark in own
        if mark != decimal
    ]


def _pattern(notation: Notation) -> str:
    """The pattern of a number without sign and exponent. Groups never begin with 0, and have two digits in India."""
    mark, point = f"[{notation.thousands}]", f"[{notation.decimal}]"
    grouped = rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|[1-9]\d?(?:{mark}\d{{2}})+{mark}\d{{3}}"
    return rf"^(?:(?:\d+|{grouped})(?:{point}\d*)?|{point}\d+)$"


def _used(parts: Any, notation: Notation, is_read: npt.NDArray[np.bool_]) -> Notation:
    """The marks of a notation that numbers have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    body = pc.filter(pc.struct_field(parts, "body"), pa.array(is_read))
    has = {
        mark: bool(pc.any(pc.match_substring(body, mark)).as_py()) for mark in (notation.decimal, notation.thousands)
    }
    thousands = notation.thousands if has[notation.thousands] else ""
    return Notation(notation.decimal if has[notation.decimal] or thousands in DECIMALS else "", thousands)


def _unit(parts: Any, counts: npt.NDArray[np.integer[Any]], wanted: str) -> tuple[str, npt.NDArray[np.bool_]]:
    """The most frequent unit, and which numbers have it, or none, which is something else where others are percent."""
    import pyarrow.compute as pc

    before, after = (pc.fill_null(pc.struct_field(parts, name), "") for name in ("before", "after"))
    units = pc.binary_join_element_wise(before, after, "").to_numpy(zero_copy_only=False)
    names = set(units[counts > 0].tolist())
    unit = wanted or max(sorted(names - {""}), key=lambda name: int(counts[units == name].sum()), default="")
    if not wanted and unit and 2 * counts[units == ""].sum() > counts.sum() and unit == PERCENT:
        unit = ""
    return unit, np.isin(units, [unit] if unit == PERCENT else [unit, ""])


def _values(parts: Any, notation: Notation, is_read: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.replace_substring(pc.struct_field(parts, "body"), notation.thousands, "")
    texts = pc.replace_substring(texts, notation.decimal, ".")
    texts = pc.binary_join_element_wise(texts, pc.struct_field(parts, "exponent"), "")
    known = pc.if_else(pa.array(is_read), texts, pa.scalar(None, texts.type))
    values = np.array(known.cast("float64").to_numpy(zero_copy_only=False))
    return np.where(_is_marked(parts, _SIGNS), -values, values)


def _is_marked(parts: Any, signs: Sequence[tuple[str, str]]) -> npt.NDArray[np.bool_]:
    """Which numbers have one of some signs, each a part and what it is."""
    import pyarrow.compute as pc

    marked = np.zeros(len(parts), bool)
    for name, mark in signs:
        marked |= pc.fill_null(pc.equal(pc.struct_field(parts, name), mark), False).to_numpy(zero_copy_only=False)
    return marked
