"""What people call a run, note of it and tag it with: the only part of a run that no engine writes.

It is kept in ``meta`` beside what has been there from the start, so that a run of any age takes labels, and an older
program reads over them.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine.errors import RunError, UsageError
from accel_engine.run.schema import connect, transaction
from accel_engine.text import printable

NAME_LENGTH = 80
"""The most characters of a name."""

NOTE_LENGTH = 2000
"""The most characters of a note."""

_TAG = re.compile(r"[^\W_][\w./@:-]{0,39}")


@dataclass(frozen=True, slots=True)
class Annotations:
    """What people have said of a run.

    Attributes:
        name: In place of the plan's; empty where nobody renamed the run.
        note: Free text in one line.
        tags: Words to find it by, sorted.
    """

    name: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()


def read_annotations(meta: Mapping[str, Any]) -> Annotations:
    """Find the labels among the rows of ``meta``.

    Raises:
        ValueError: They are damaged.
    """
    return Annotations(str(meta.get("name", "")), str(meta.get("note", "")), tuple(json.loads(meta.get("tags", "[]"))))


def name(text: str) -> str:
    """Check a name; empty gives a run its plan's again.

    Raises:
        UsageError: It is too long.
    """
    return _line(text, "a name", NAME_LENGTH)


def note(text: str) -> str:
    """Check a note; empty takes it away.

    Raises:
        UsageError: It is too long.
    """
    return _line(text, "a note", NOTE_LENGTH)


def tags(words: Iterable[str]) -> tuple[str, ...]:
    """Check tags and put them in order.

    Raises:
        UsageError: One is none.
    """
    found = sorted(set(words))
    for word in found:
        if not _TAG.fullmatch(word):
            raise UsageError(
                f"{word!r} is no tag: give up to 40 letters, digits and ._/@:-, with a letter or a digit first"
            )
    return tuple(found)


def tagged(before: Sequence[str], changes: Iterable[str]) -> tuple[str, ...]:
    """Change tags: ``+a`` or ``a`` adds one, ``-b`` takes one away.

    Raises:
        UsageError: One is none.
    """
    after = set(before)
    for change in changes:
        (word,) = tags([change.removeprefix("+") if change[:1] != "-" else change[1:]])
        (after.discard if change.startswith("-") else after.add)(word)
    return tuple(sorted(after))


def write_annotations(directory: Path, change: Callable[[Annotations], Annotations]) -> Annotations:
    """Change a run's labels, also while an engine writes the run.

    Args:
        directory: The run's.
        change: Gives the labels from those that the run has.

    Returns:
        The labels that it has now.

    Raises:
        RunError: The run cannot be written.
        UsageError: As ``change`` raises it.
    """
    try:
        with closing(connect(directory)) as connection, transaction(connection):
            before = read_annotations(dict(connection.execute("SELECT key, value FROM meta")))
            after = change(before)
            if after != before:
                rows = {"name": after.name, "note": after.note, "tags": json.dumps(after.tags)}
                connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows.items())
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise RunError(f"cannot write the run {directory.name}: {error}") from error
    return after


def rename(directory: Path, text: str) -> Annotations:
    """Give a run another name; see :func:`write_annotations` and :func:`name`."""
    return write_annotations(directory, lambda labels: replace(labels, name=name(text)))


def set_note(directory: Path, text: str) -> Annotations:
    """Give a run another note; see :func:`write_annotations` and :func:`note`."""
    return write_annotations(directory, lambda labels: replace(labels, note=note(text)))


def set_tags(directory: Path, changes: Iterable[str]) -> Annotations:
    """Change a run's tags; see :func:`write_annotations` and :func:`tagged`."""
    changes = tuple(changes)
    return write_annotations(directory, lambda labels: replace(labels, tags=tagged(labels.tags, changes)))


def _line(text: str, what: str, longest: int) -> str:
    """One line, as it will be shown."""
    line = " ".join(printable(text).split())
    if len(line) > longest:
        raise UsageError(f"{what} has at most {longest} characters; this one has {len(line)}")
    return line
