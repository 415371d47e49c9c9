"""Text from outside: what is left of it is seen, and nothing in it is obeyed."""

import shlex
import subprocess
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pytest

from accel_engine.errors import AccelError
from accel_engine.plan import Plan
from accel_engine.text import is_printable, printable, printable_fields, printable_line, shell_command
from accel_engine.words.numbers import percent


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("loss 0.25, é 日本 ⣿ ✓", "loss 0.25, é 日本 ⣿ ✓"),
        ("a\x1b]0;X\x07\x1b[2Jb", r"a\x1b]0;X\x07\x1b[2Jb"),  # a title, and clearing the screen
        ("\x1b]52;c;UFdO\x07", r"\x1b]52;c;UFdO\x07"),  # the clipboard
        ("\x9b2J\x9d0;X\x9c\x85", r"\x9b2J\x9d0;X\x9c\x85"),  # the same in eight bits
        ("\x1b[1;38;2;1;2;3mbold\x1b[0m", "bold"),
        ("a\x00b\x7f\x08", r"a\x00b\x7f\x08"),
        ("a\tb\n\tc", "a       b\n        c"),
        ("one\r\ntwo\rthree\x0b", "one\ntwo\\rthree\\x0b"),
        ("\u202eabc\u202c\u2066\u2069\u200e\u200f\u061c", r"\u202eabc\u202c\u2066\u2069\u200e\u200f\u061c"),
        ("a\u2028b\u2029c\u200bd\ufeff\xad", r"a\u2028b\u2029c\u200bd\ufeff\xad"),
        ("\U000e0041\U000e007f", r"\U000e0041\U000e007f"),
        ("\udcff\ud800", r"\udcff\ud800"),  # a name of a file that is no UTF-8
        ("👩\u200d💻 क्\u200cष", "👩\u200d💻 क्\u200cष"),
        ("e\u0301", "e\u0301"),
        ("e" + 40 * "\u0301" + "x", "e" + 4 * "\u0301" + "x"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown
    assert all(map(is_printable, shown.replace("\n", "")))


def test_every_character_that_is_left_is_seen() -> None:
    assert all(map(is_printable, printable_line("".join(map(chr, range(0x110000))))))


def test_a_line_is_one() -> None:
    assert printable_line("one\ntwo\r\nthree") == "one two three"


class Kind(StrEnum):
    ONE = "one\x1b"


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    size: float | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    parts: tuple[Part, ...]
    values: dict[str, object]
    kind: Kind = Kind.ONE
    plan: Plan | None = None
    losses: npt.NDArray[np.float32] | None = None


def test_all_text_in_a_value_is_cleaned_and_nothing_else() -> None:
    plan = Plan(name="\x1b[2J")
    whole = Whole((Part("a\x07", 1.0), Part("b")), {"x\x9b": ["\u202e", 2, None]}, plan=plan)
    cleaned = printable_fields(whole)
    assert cleaned == Whole((Part(r"a\x07", 1.0), Part("b")), {r"x\x9b": [r"\u202e", 2, None]}, plan=plan)
    assert cleaned.plan is plan
    assert cleaned.parts[1] is whole.parts[1]
    assert cleaned.kind is Kind.ONE


def test_a_value_without_anything_to_clean_is_given_back_itself() -> None:
    whole = Whole((Part("a", float("nan")),), {"x": float("nan")}, losses=np.zeros(2, np.float32))
    assert printable_fields(whole) is whole


def test_an_error_quotes_nothing_that_a_terminal_obeys() -> None:
    error = AccelError("no array x\x1b[2J\u202e\nhere")
    assert str(error) == "no array x\\x1b[2J\\u202e\nhere"


WORDS = ["accel-tui", "it's", "a\x1b[2J'b\\c\n", "é\u202ex", "\udcff", "two words", "$HOME"]


def test_a_command_can_be_pasted_and_means_the_same() -> None:
    command = shell_command(WORDS)
    assert all(map(is_printable, command))
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert [word.decode(errors="surrogateescape") for word in printed.stdout.split(b"\0")[:-1]] == WORDS


def test_a_command_of_usual_words_is_as_ever() -> None:
    words = ["accel-tui", "train", "--name", "two words", "--data", "ü.npz"]
    assert shell_command(words) == shlex.join(words)
    assert Plan(name="\x1b[2J").command() == r"accel-tui train --name $'\x1b[2J'"


@pytest.mark.parametrize(
    ("share", "shown", "whole", "tenths"),
    [
        (0.0, "0%", "0%", "0.0%"),
        (1e-5, "under 0.01%", "<1%", "<0.1%"),
        (0.004, "0.4%", "<1%", "0.4%"),
        (0.032, "3.2%", "3%", "3.2%"),
        (0.0996, "10%", "10%", "10.0%"),
        (0.41, "41%", "41%", "41.0%"),
        (359 / 360, "99.7%", ">99%", "99.7%"),
        (0.9998, "99.98%", ">99%", ">99.9%"),
        (1 - 1e-6, "over 99.99%", ">99%", ">99.9%"),
        (1.0, "100%", "100%", "100.0%"),
        (1.5, "150%", "150%", "150.0%"),
    ],
)
def test_only_all_is_100_percent_and_only_none_is_0(share: float, shown: str, whole: str, tenths: str) -> None:
    assert (percent(share), percent(share, 0), percent(share, 1)) == (shown, whole, tenths)
