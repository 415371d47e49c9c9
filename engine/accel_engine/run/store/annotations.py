"""Names, notes and tags that users give to runs: the only part of a run that no engine writes.

They are rows of ``meta``.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine.errors import UsageError
from accel_engine.json_values import encode
from accel_engine.plan.options import OptionSpec, option
from accel_engine.run.directory.run_paths import host_function, host_of_run
from accel_engine.run.store.database import check_writable, reading, writing
from accel_engine.run.store.meta import read_meta
from accel_engine.text import printable

NAME_LENGTH = 80
"""Maximum characters of a name."""

NOTE_LENGTH = 2000
"""Maximum characters of a note."""

TAG_LENGTH = 40
"""Maximum characters of a tag."""

_TAG = re.compile(rf"[^\W_][\w./@:-]{{0,{TAG_LENGTH - 1}}}")


def validate_name(text: str) -> str:
    """Check a name; an empty one restores the plan's name.

    Raises:
        UsageError: The name is too long.
    """
    return _validate_line(text, "a name", NAME_LENGTH)


def validate_note(text: str) -> str:
    """Check a note; an empty one removes it.

    Raises:
        UsageError: The note is too long.
    """
    return _validate_line(text, "a note", NOTE_LENGTH)


def validate_tags(words: Iterable[str]) -> tuple[str, ...]:
    """Check and sort tags.

    Raises:
        UsageError: A tag is invalid.
    """
    tags = sorted(set(words))
    for word in tags:
        if not _TAG.fullmatch(word):
            raise UsageError(
                f"invalid tag {word!r}: use up to {TAG_LENGTH} letters, digits and ._/@:-, starting with a letter or "
                "a digit"
            )
    return tuple(tags)


def apply_tag_changes(before: Sequence[str], changes: Iterable[str]) -> tuple[str, ...]:
    """Change tags: ``+a`` or ``a`` adds a tag, ``-b`` removes one.

    Raises:
        UsageError: A tag is invalid.
    """
    after = set(before)
    for change in changes:
        (word,) = validate_tags([change.removeprefix("+") if change[:1] != "-" else change[1:]])
        (after.discard if change.startswith("-") else after.add)(word)
    return tuple(sorted(after))


def _validate_line(text: str, kind: str, max_length: int) -> str:
    line = " ".join(printable(text).split())
    if len(line) > max_length:
        raise UsageError(f"{kind} has at most {max_length} characters; this one has {len(line)}")
    return line


def _read_tags(text: str) -> tuple[str, ...]:
    return validate_tags(text.replace(",", " ").split())


def _read_changes(text: str) -> tuple[str, ...]:
    changes = tuple(text.replace(",", " ").split())
    apply_tag_changes((), changes)
    return changes


@dataclass(frozen=True, slots=True)
class Annotations:
    """A run's name, note and tags."""

    name: str = option("", OptionSpec("Replaces the name of the plan.", str, hint="optional", read=validate_name))
    note: str = option("", OptionSpec("A line of text.", str, read=validate_note))
    tags: tuple[str, ...] = option(
        (), OptionSpec("Words to filter runs by.", tuple, hint="paper baseline", read=_read_tags)
    )


@dataclass(frozen=True, slots=True)
class TagChanges:
    """Changes of tags."""

    tags: tuple[str, ...] = option(
        (), OptionSpec("Tags to add (+) or remove (-).", tuple, hint="+paper -old", read=_read_changes)
    )


def read_annotations(meta: Mapping[str, Any]) -> Annotations:
    """The annotations of decoded rows of ``meta``."""
    return Annotations(meta.get("name", ""), meta.get("note", ""), meta.get("tags", ()))


def write_annotations(directory: Path, change: Callable[[Annotations], Annotations]) -> Annotations:
    """Change a run's annotations, also while an engine writes the run; of a mirrored run, on its host, too.

    Args:
        directory: The run's directory.
        change: Maps the present annotations to the new ones.

    Returns:
        The new annotations.

    Raises:
        RunError: The run cannot be written.
        UsageError: Raised by ``change``.
    """
    check_writable(directory)
    if host_of_run(directory):
        with reading(directory) as database:
            before = read_annotations(read_meta(database))
        if (wanted := change(before)) != before:
            host_function("mirrored_runs:annotate")(directory, wanted)
    with writing(directory) as database:
        before = read_annotations(read_meta(database))
        after = change(before)
        if after != before:
            database.set_meta(name=after.name, note=after.note, tags=encode(after.tags))
    return after


def rename_run(directory: Path, text: str) -> Annotations:
    """Rename a run; see :func:`write_annotations` and :func:`validate_name`."""
    return write_annotations(directory, lambda before: replace(before, name=validate_name(text)))


def set_note(directory: Path, text: str) -> Annotations:
    """Set a run's note; see :func:`write_annotations` and :func:`validate_note`."""
    return write_annotations(directory, lambda before: replace(before, note=validate_note(text)))


def set_tags(directory: Path, changes: Iterable[str]) -> Annotations:
    """Change a run's tags; see :func:`write_annotations` and :func:`apply_tag_changes`."""
    changes = tuple(changes)
    return write_annotations(directory, lambda before: replace(before, tags=apply_tag_changes(before.tags, changes)))
