"""Escapes control characters in text from outside: names, notes, paths, log lines, exceptions, drivers' messages.

Files keep the original text. It is escaped where it enters what is shown (:func:`printable`, and
:func:`printable_fields` for the fields of a value), as its width matters from there on. As a second line of defence,
the command line writes only through ``accel_tui.cli.output``, and the dashboard through its canvas.
"""

import re
import shlex
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

_COLOURS = re.compile(r"\x1b\[[\d;:]*m")
"""Colours and bold (ECMA-48, 8.3.117), which Keras and progress bars use."""

_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that a terminal interprets or does not show: control and format characters (including those for
the direction of text, and tags), lone surrogates, separators of lines and paragraphs."""

_JOINERS = "\u200c\u200d"
"""Format characters that emoji and some scripts need."""

_NUMBERS = frozenset({int, float, bool, type(None)})

_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
_PILE = re.compile(f"([{_MARKS}{_JOINERS}]{{4}})[{_MARKS}{_JOINERS}]+")
"""More combining marks on one character than any language uses."""


def is_printable(character: str) -> bool:
    """Whether a character can be sent to a terminal."""
    return unicodedata.category(character) not in _UNPRINTABLE or character in _JOINERS


def printable(text: str) -> str:
    r"""Escape everything in a text that a terminal would interpret or not show.

    Colours are removed, tabs become blanks, lines end with ``\n``. All other unprintable characters are escaped as in
    Python: ``\x1b``, ``\u202e``, ``\udcff``. Idempotent.
    """
    if text.isascii() and text.isprintable():
        return text
    lines = _COLOURS.sub("", text).replace("\r\n", "\n").expandtabs()
    return _PILE.sub(r"\1", "".join(map(_shown, lines)))


def encodable(text: str) -> str:
    """Escape what UTF-8 does not have: lone surrogates, which stand for bytes of names that are not text."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def printable_line(text: str) -> str:
    """Escape a text as :func:`printable` does, and join its lines with blanks."""
    return printable(text).replace("\n", " ")


def printable_fields(value: T) -> T:
    """Apply :func:`printable_line` to all texts in a value, in mappings, tuples, lists and dataclasses.

    Paths, and dataclasses that validate themselves, such as a plan, stay unchanged: they are used, not only shown.
    If nothing changes, the value itself is returned.
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
    """The field names of a dataclass; empty for other classes and those with a ``__post_init__``."""
    is_plain = is_dataclass(kind) and not hasattr(kind, "__post_init__")
    return tuple(field.name for field in fields(kind)) if is_plain else ()


def truncated(text: str, length: int) -> str:
    """Cut a text of more than ``length`` characters to this length, with an ellipsis at its end."""
    return text if len(text) <= length else text[: length - 1] + "…"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Suggest the known names closest to an unknown one, or list them if no name is close."""
    names = list(known)
    lowered = {candidate.lower(): candidate for candidate in names}
    close = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3, cutoff=0.55)]
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:12])
    return f"known: {shown}{', ...' if len(names) > 12 else ''}"


def shell_command(words: Iterable[str]) -> str:
    r"""Quote words for a shell, without control characters, so that the command can be shown and pasted.

    Words with unprintable characters are quoted for bash, zsh and ksh, e.g. ``$'a\x1b[2J'``.
    """
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if all(map(is_printable, word)):
        return shlex.quote(word)
    return f"$'{''.join(map(_in_quotes, word))}'"


def _in_quotes(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if 0xDC80 <= ord(character) <= 0xDCFF:  # a byte of a file's name that is no UTF-8 (PEP 383)
        return f"\\x{ord(character) - 0xDC00:02x}"
    if is_printable(character):
        return character
    return f"\\x{ord(character):02x}" if character.isascii() else f"\\U{ord(character):08x}"


@lru_cache(maxsize=4096)
def _shown(character: str) -> str:
    return character if character == "\n" or is_printable(character) else character.encode("unicode_escape").decode()
