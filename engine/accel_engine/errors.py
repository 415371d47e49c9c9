"""Errors with messages for the user, and the cause in TensorFlow's long ones."""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

from accel_engine.text import printable, truncated

MAX_REASON_LENGTH = 500
"""Maximum stored characters of an exception's text."""

MAX_MESSAGE_LENGTH = 20_000
"""Maximum characters of a message, of which names from outside may be a part."""

MAX_VALUE_LENGTH = 200
"""Maximum characters of a value in a message."""

MAX_ERRORS = 20
"""Maximum number of errors that are listed."""


class AccelError(Exception):
    """An error that is shown to the user as a message, without a traceback.

    Attributes:
        exit_status: Exit status of a command that ends with it.
    """

    exit_status = 1

    def __str__(self) -> str:
        """The message, without control characters of quoted names, values and errors."""
        return printable(super().__str__()[:MAX_MESSAGE_LENGTH])


class UsageError(AccelError):
    """Wrong usage: an invalid name, value or file."""

    exit_status = 2


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A plan field in a message, which the form shows by its label and the command line as an option."""

    field: str
    """Name of the field."""
    value: str = ""
    """The value to give it; empty for none."""

    def __str__(self) -> str:
        """The command-line option, such as ``--virtual-cpus 2``."""
        return " ".join(filter(None, ("--" + self.field.replace("_", "-"), self.value)))


Words: TypeAlias = tuple[str | FieldValue, ...]
"""The parts of a message."""


def join_words(words: Iterable[str | FieldValue], name: Callable[[FieldValue], str] = str) -> str:
    """Join the parts of a message, with each field shown by ``name``."""
    return printable("".join(name(part) if isinstance(part, FieldValue) else part for part in words))


def show_value(value: object) -> str:
    """A value of a plan in a message, as a plan file writes it: ``'adam'``, ``5``, ``true``; a long one is cut."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(",".join(value) if isinstance(value, tuple) else value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a number of thousands of digits"
    return truncated(text, MAX_VALUE_LENGTH)


def first_errors(lines: Sequence[str]) -> list[str]:
    """The first of many errors, and how many more there are."""
    more = len(lines) - MAX_ERRORS
    return [*lines[:MAX_ERRORS], f"and {more:,} more"] if more > 0 else list(lines)


class PlanError(UsageError):
    """An invalid plan.

    Args:
        field: Name of the invalid field.
        value: Its value.
        reason: The parts of a message about the allowed values.
    """

    def __init__(self, field: str, value: object, *reason: str | FieldValue) -> None:
        super().__init__(f"{field[:MAX_VALUE_LENGTH]} = {show_value(value)}: {join_words(reason)}")
        self.field = field
        self.value = value
        self.reason = reason

    @property
    def allowed(self) -> str:
        """The message about the allowed values, with fields as command-line options."""
        return join_words(self.reason)


class ModelError(AccelError):
    """A model that cannot be built, or does not fit its data."""


class DataError(AccelError):
    """Data that cannot be read, or is invalid."""


class UnreadableError(DataError):
    """A file that cannot be opened, or is damaged; the others of its folder may be whole."""


class RunError(AccelError):
    """A run that cannot be found, read or written."""


class DatabaseError(RunError):
    """A run's database that SQLite cannot use, perhaps only now: it is locked, or the disk is full."""


@contextmanager
def file_errors(problem: str, kind: type[AccelError] = RunError) -> Iterator[None]:
    """Raise errors of the system as errors for users, with the reason.

    Args:
        problem: What cannot be done, such as ``cannot write runs.csv``.
        kind: The error that is raised.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{problem}: {error.strerror or error}") from error


_DISK_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "database or disk is full")
"""Messages of the system and SQLite; TensorFlow raises the same type as for a device out of memory."""


def is_disk_full(error: BaseException) -> bool:
    """Whether an error of the system, or of a library, says that a disk is full."""
    return any(words in str(error) for words in _DISK_FULL)


class EngineMissingError(AccelError):
    """TensorFlow is not installed, or not usable."""


def format_error(error: BaseException) -> str:
    """Format an exception on one line: ``ValueError: oh no``; an :exc:`AccelError` or ``OSError`` without its type."""
    text = ""
    with suppress(Exception):  # the __str__ of a user's exception may fail
        text = " ".join(cause_first(str(error)).split())[:MAX_REASON_LENGTH]
    if isinstance(error, (AccelError, OSError)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


_MARKS = ("Graph execution error:", "{{node ", "{{function_node ", " root error(s) found.")
"""Parts of messages of errors in a graph."""

_NOISE = (
    (re.compile(r"\{\{function_node [^}]*\}\} ?"), ""),
    (re.compile(r"\n?\s*\[\[\{\{node [^}]*\}\}\]\]"), ""),
    (re.compile(r"\n\s*\[\[[^\]\s]*\]\]"), ""),
    (re.compile(r" ?\[Op:\w+\](?: name: ?\S*)?"), ""),
    (re.compile(r"Graph execution error:\s*"), "\n"),
)
"""Parts of TensorFlow's messages that only name its internal places."""

_FIRST_ROOT = re.compile(r"\d+ root error\(s\) found\.\s*\(0\) (?:[A-Z_]+:\s*)?(.*?)\n\s*\(1\) .*", re.DOTALL)
_NODE = re.compile(r"Detected at node (\S+) defined at \(most recent call last\):\s*")
_FRAME = re.compile(r'\s*File "[^"]+", line \d+')
_TRACEBACK = "Traceback (most recent call last):"


def cause_first(text: str) -> str:
    """The message of an error in a graph without the frames of the code that built it; other texts unchanged.

    Args:
        text: The message, perhaps with the name of its type before it.

    Returns:
        The cause, and behind it the name of the graph's node, if the message tells it.
    """
    if not any(mark in text for mark in _MARKS):
        return text
    node = _NODE.search(text)
    found = _FIRST_ROOT.sub(r"\1", _NODE.sub("\n", text))
    for pattern, by in _NOISE:
        found = pattern.sub(by, found)
    lines = dict.fromkeys(_without_frames(found))
    cause = "\n".join(lines).strip().replace(": \n", ": ", 1)
    return f"{cause} (at {node[1]})" if node else cause


def frames_in(text: str) -> list[tuple[str, int]]:
    """The files and lines of the code that built the failed part of a graph, outermost first."""
    return [(file, int(line)) for file, line in re.findall(r'File "([^"\n]+)", line (\d+)', text)]


def _without_frames(text: str) -> Iterator[str]:
    is_frame = False
    for line in text.splitlines():
        is_start = bool(_FRAME.match(line)) or _TRACEBACK in line
        is_frame = is_start or (is_frame and (not line.strip() or line[0].isspace()))
        if not is_frame and line.strip():
            yield line
