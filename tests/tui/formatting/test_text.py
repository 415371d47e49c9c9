import random

import pytest
from rich.cells import cell_len

from accel_tui.formatting.text import (
    base_name,
    fit,
    paragraph_lines,
    shorten,
    shorten_lines,
    shorten_middle,
    shorten_start,
    wrapped,
)


def test_the_end_of_a_long_text_is_cut() -> None:
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdef", 4) == "abc\u2026"
    assert shorten("abc", 0) == ""
    assert shorten("漢字", 3) == "漢…"


def test_a_text_of_too_many_lines_ends_with_an_ellipsis() -> None:
    assert shorten_lines("one of ab, cd, ef", 8, 3) == "one of ab, cd, ef"
    assert shorten_lines("one of ab, cd, ef", 9, 2) == "one of ab, cd, …"
    assert shorten_lines("one of ab, cde, ef", 9, 2) == "one of ab, cde,…"
    assert shorten_lines("one of ab, cd, ef", 0, 2) == "one of ab, cd, ef"  # before the first layout


def test_a_text_fills_its_width() -> None:
    assert fit("ab", 4) == "ab  "
    assert fit("ab", 4, right=True) == "  ab"
    assert fit("漢字", 3) == "漢…"


def test_of_what_is_too_long_the_end_is_told() -> None:
    assert shorten_start("my_networks.py:build", 14) == "…rks.py:build"[:1] + "tworks.py:build"[-13:]
    assert len(shorten_start("my_networks.py:build", 14)) == 14
    assert shorten_start("net.py:build", 12) == "net.py:build"
    assert shorten_start("漢字.py:f", 9) == "漢字.py:f"
    assert shorten_start("漢字.py:f", 8) == "…字.py:f"
    assert shorten_start("漢字.py:f", 7) == "….py:f"
    assert shorten_start("漢字漢", 5) == "…字漢"
    assert shorten_start("abc", 0) == ""


def test_the_middle_of_a_name_is_cut() -> None:
    assert shorten_middle("block1/conv/kernel", 18) == "block1/conv/kernel"
    assert shorten_middle("block1/conv/kernel", 11) == "block…ernel"
    assert shorten_middle("block1/conv/kernel", 10) == "block…rnel"
    assert [shorten_middle("abc", width) for width in (2, 1, 0)] == ["a…", "…", ""]
    assert shorten_middle("漢字漢字", 5) == "漢…字"


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


def test_line_ends_within_a_paragraph_are_blanks() -> None:
    assert paragraph_lines("one two three", 9) == ["one two", "three"]
    assert paragraph_lines("one\ntwo", 20) == ["one two"]
    assert paragraph_lines("", 20) == [""]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("/a/long/way/net.py:build", "net.py:build"),
        ("/data/flowers/", "flowers"),
        ("mine.npz", "mine.npz"),
        ("package.module:build", "package.module:build"),
        ("synthetic:8x8x1:10", "synthetic:8x8x1:10"),
        ("", ""),
        ("/", "/"),
    ],
)
def test_a_name_is_told_without_its_folder(spec: str, told: str) -> None:
    assert base_name(spec) == told
