"""Texts that grow are wrapped as if they were whole."""

import random

import pytest
from rich.cells import cell_len

from accel_tui.formatting.wrapping import hanging, wrapped


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a\n\nb\n", ["a", "", "b", ""]),
        ("one two three", ["one two", "three"]),
        ("one two ", ["one two", ""]),
        ("sixteen letters-", ["sixteen", "letters-"]),
        ("eighteen-letters", ["eighteen", "-letters"]),
        ("日本語の文", ["日本語の", "文"]),
        ("  deep", ["  deep"]),
    ],
)
def test_lines_break_at_blanks_if_they_can(text: str, lines: list[str]) -> None:
    width = 7 if text.startswith("one") else 8
    assert wrapped(text, width) == lines


@pytest.mark.parametrize("width", [1, 5, 20])
def test_a_text_that_grows_has_the_lines_of_the_whole(width: int) -> None:
    rng = random.Random(0)
    text = "".join(rng.choices("ab  c\n語é", k=2_000))
    whole = wrapped(text, width)
    grown = [""]
    for start in range(0, len(text), 7):
        grown[-1:] = wrapped(grown[-1] + text[start : start + 7], width)
    assert grown == whole
    assert all(cell_len(line) <= max(width, 2) for line in whole)


def test_the_second_line_of_a_paragraph_is_indented() -> None:
    assert hanging("one two three", 9) == ["one two", "  three"]
    assert hanging("one\ntwo", 20) == ["one two"]
    assert hanging("", 20) == [""]
