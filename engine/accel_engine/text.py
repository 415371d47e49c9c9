"""Text from outside, made fit for a terminal: names, notes, paths, log lines, exceptions, what drivers answer.

What is on disk stays as it is. Text is cleaned where it enters what is shown (:func:`printable`, and
:func:`printable_fields` for all that a value holds), since how wide it is counts from there on. Whatever was forgotten
is stopped where it leaves: the command line writes by ``accel_tui.cli.output`` alone, the dashboard by its canvas.
"""

import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

_COLOURS = re.compile(r"\x1b\[[\d;:]*m")
"""Colours and bold (ECMA-48, 8.3.117), which Keras and progress bars put around words: they say nothing themselves."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of what a terminal obeys or does not show: controls, formats (among them what turns the
direction of text, and tags), lone surrogates, separators of lines and paragraphs."""

_JOINERS = "\u200c\u200d"
"""Formats that emoji and some scripts cannot be written without."""

_NUMBERS = frozenset({int, float, bool, type(None)})

_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
_PILE = re.compile(f"([{_MARKS}{_JOINERS}]{{4}})[{_MARKS}{_JOINERS}]+")
"""More marks on one character than any language has."""


def is_seen(character: str) -> bool:
    """Whether a character only shows something, so that it can be sent to a terminal."""
    return unicodedata.category(character) not in _UNSEEN or character in _JOINERS


def printable(text: str) -> str:
    r"""Text in which nothing is hidden, and nothing that a terminal would obey.

    Colours are left out, tabs become blanks, lines end with ``\n``. All else that cannot be seen is written as Python
    writes it, in ASCII: ``\x1b``, ``\u202e``, ``\udcff``. Cleaned twice it is the same.
    """
    if text.isascii() and text.isprintable():
        return text
    lines = _COLOURS.sub("", text).replace("\r\n", "\n").expandtabs()
    return _PILE.sub(r"\1", "".join(map(_shown, lines)))


def printable_line(text: str) -> str:
    """The same in one line: where a line ended there is a blank."""
    return printable(text).replace("\n", " ")


def printable_fields(value: T) -> T:
    """The same value with each text in it in a printable line, in mappings, tuples, lists and dataclasses.

    What checks itself when it is made stays as it is, a plan among them: it is there to be acted upon. So do paths.
    A value in which nothing changes is given back itself.
    """
    kind: type = type(value)
    if kind in _NUMBERS:
        return value
    cleaned: Any = value
    if isinstance(value, str):
        cleaned = value if isinstance(value, Enum) else printable_line(value)
    elif isinstance(value, Mapping):
        cleaned = {printable_fields(key): printable_fields(item) for key, item in value.items()}
    elif isinstance(value, tuple | list):
        cleaned = kind(map(printable_fields, value))
    elif names := _fields_of(kind):
        before = [(name, getattr(value, name)) for name in names]
        changed = {name: new for name, old in before if (new := printable_fields(old)) is not old}
        return replace(value, **changed) if changed else value  # type: ignore[type-var]
    return value if cleaned is value or cleaned == value else cleaned


@lru_cache(maxsize=256)
def _fields_of(kind: type) -> tuple[str, ...]:
    """The names of a dataclass's fields; none of another class, nor of one whose instances check themselves."""
    is_plain = is_dataclass(kind) and not hasattr(kind, "__post_init__")
    return tuple(field.name for field in fields(kind)) if is_plain else ()


def shell_command(words: Iterable[str]) -> str:
    r"""Words as a shell takes them, with nothing in them that a terminal obeys, even where it is pasted.

    What :func:`shlex.join` would write as it is stands in ``$'...'`` of bash, zsh and ksh, as in ``$'a\x1b[2J'``.
    """
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if all(map(is_seen, word)):
        return shlex.quote(word)
    return f"$'{''.join(map(_in_quotes, word))}'"


def _in_quotes(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if 0xDC80 <= ord(character) <= 0xDCFF:  # a byte of a file's name that is no UTF-8 (PEP 383)
        return f"\\x{ord(character) - 0xDC00:02x}"
    if is_seen(character):
        return character
    return f"\\x{ord(character):02x}" if character.isascii() else f"\\U{ord(character):08x}"


@lru_cache(maxsize=4096)
def _shown(character: str) -> str:
    return character if character == "\n" or is_seen(character) else character.encode("unicode_escape").decode()
