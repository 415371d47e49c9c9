"""What JSON may have where a type is expected."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from accel_engine.json_values import (
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_TEXT,
    Count,
    JsonValue,
    JsonValueError,
    Number,
    Text,
    convert,
    decode,
    decode_or_none,
    encode,
    to_plain,
)


@dataclass(frozen=True, slots=True)
class Part:
    step: Count


@dataclass(frozen=True, slots=True)
class Whole:
    parts: tuple[Part, ...] = ()
    rate: Number = 0.0
    best: Number | None = None
    losses: dict[str, Number] = field(default_factory=dict)
    name: Text = ""
    plan: dict[str, JsonValue] = field(default_factory=dict)


WHOLE = Whole((Part(0), Part(MAX_INTEGER)), 0.5, None, {"loss": 1.0}, "n\udcff\x00ü", {"layers": [[1], None, "x"]})


def test_what_was_encoded_is_decoded() -> None:
    text = encode(WHOLE)
    assert text.isascii()
    assert "\n" not in text
    assert decode(text, Whole) == WHOLE


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_null_and_not_a_number_again(number: float) -> None:
    text = encode(Whole(rate=number, best=number, losses={"loss": number}))
    found = decode(text, Whole)
    assert json.loads(text)["rate"] is None
    assert math.isnan(found.rate)
    assert math.isnan(found.losses["loss"])
    assert found.best is None


def test_numbers_of_numpy_are_encoded() -> None:
    assert to_plain({"rate": np.float64(0.5), "losses": (np.float64("nan"),)}) == {"rate": 0.5, "losses": [None]}


def test_long_texts_are_cut_where_asked() -> None:
    assert to_plain({"name": "abcdef"}, 4) == {"name": "abc…"}
    assert to_plain({"name": "abcd"}, 4) == {"name": "abcd"}


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else 1


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"rate": "fast"}, r"not a number - at `\$.rate`"),
        ({"rate": True}, "not a number"),
        ({"rate": math.inf}, "too large"),
        ({"losses": {"loss": 10**400}}, "too large"),
        ({"parts": [{"step": -1}]}, ">= 0"),
        ({"parts": [{"step": MAX_INTEGER + 1}]}, "<="),
        ({"parts": [{"step": 1.0}]}, "`int`, got `float`"),
        ({"parts": [{}]}, "missing required field `step`"),
        ({"parts": {}}, "array"),
        ({"name": (MAX_TEXT + 1) * "x"}, "length <="),
        ({"plan": {"layers": nested(MAX_DEPTH + 1)}}, "nested too deeply"),
        ([], "object"),
    ],
)
def test_wrong_types_are_refused(values: Any, problem: str) -> None:
    with pytest.raises(JsonValueError, match=problem):
        convert(values, Whole)


@pytest.mark.parametrize("text", [None, b"{}", "", "{", "[" * 100_000, '{"rate": 9e999}', '{"rate": -Infinity}'])
def test_damaged_texts_are_one_error(text: Any) -> None:
    with pytest.raises(JsonValueError):
        decode(text, Whole)
    assert decode_or_none(text, Whole) is None


def test_unknown_fields_are_ignored_and_missing_ones_have_their_defaults() -> None:
    assert decode('{"colour": {"of": ["a later version"]}, "rate": 2}', Whole) == Whole(rate=2)


def test_types_that_are_no_classes_name_the_place_of_what_is_wrong() -> None:
    assert decode("[1, 2]", tuple[Count, ...]) == (1, 2)
    with pytest.raises(JsonValueError, match=r"at `\$\[1\]`"):
        decode("[1, -2]", tuple[Count, ...])
