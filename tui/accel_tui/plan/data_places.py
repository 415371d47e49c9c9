"""Data that can be chosen: the files and folders of a folder, built-in datasets, and the data of the latest runs."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine import data
from accel_engine.data import FILE_SUFFIXES
from accel_engine.data.file_kinds import known_folder_reader
from accel_engine.user_paths import absolute_path, current_directory, user_path
from accel_engine.words import numbers

MAX_LISTED = 300
"""Data and folders of a folder that are listed; the others are counted."""

_MAX_NAMES = 20_000
"""Names of a folder that are read."""

_MOST_RECENT = 4
"""Data of earlier runs that are listed."""

_FOLDER_SECONDS = 0.5
"""Seconds after which no more folders are looked into."""

_KINDS = {".npz": "arrays", ".npy": "arrays", ".txt": "text", ".tfrecord": "records", ".tfrecords": "records"}
"""Kinds of data by the suffix of a file; a table otherwise."""


@dataclass(frozen=True, slots=True)
class DataPlace:
    """A file, a folder or a dataset."""

    text: str
    """The text of the field ``data`` for it."""
    name: str
    """Its name in the list."""
    kind: str
    """Its kind of data, such as ``table`` or ``images``; ``folder`` for a folder that has no data itself."""
    size: str = ""
    """The size of a file, the number of examples of a built-in dataset."""
    folder: Path | None = None
    """Its path if it is a folder; else ``None``."""
    is_data: bool = True
    """Whether it can be trained on."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The data and the folders in a folder."""

    folder: Path
    places: tuple[DataPlace, ...] = ()
    """Data first, then other folders."""
    others: int = 0
    """Number of files that are not data, and of data and folders beyond :data:`MAX_LISTED`."""
    problem: str = ""
    """Why it cannot be listed."""


def list_folder(folder: Path) -> Listing:
    """List a folder without reading its files; it may be slow, so call it from a thread."""
    files: list[DataPlace] = []
    folders: list[DataPlace] = []
    others, until = 0, time.monotonic() + _FOLDER_SECONDS
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry for entry, _ in zip(entries, range(_MAX_NAMES), strict=False)), key=_sort_key)
    except OSError as error:
        return Listing(folder, problem=error.strerror or str(error))
    for entry in found:
        if entry.name.startswith("."):
            continue
        is_folder = _is_folder(entry)
        suffix = Path(entry.name).suffix.lower()
        if len(files) + len(folders) >= MAX_LISTED or not (is_folder or suffix in FILE_SUFFIXES):
            others += 1
        elif is_folder:
            reader = known_folder_reader(Path(entry.path)) if time.monotonic() < until else None
            place = _folder(Path(entry.path), reader[1] if reader else "folder", is_data=reader is not None)
            (files if reader else folders).append(place)
        else:
            files.append(DataPlace(path_text(Path(entry.path)), entry.name, _KINDS.get(suffix, "table"), _size(entry)))
    return Listing(folder, (*files, *folders), others)


def built_in() -> tuple[DataPlace, ...]:
    """The built-in datasets."""
    return tuple(_dataset(entry, entry.name) for entry in data.CATALOGUE.values())


def recent(trained: Iterable[str], listed: Sequence[DataPlace]) -> tuple[DataPlace, ...]:
    """Data that runs were trained on, newest first, without what is listed anyway.

    Args:
        trained: The ``data`` of runs.
        listed: What is listed.
    """
    known = {_resolved(place.text) for place in listed} | set(data.CATALOGUE)
    found: dict[str, DataPlace] = {}
    for text in trained:
        key = _resolved(text)
        if text and key not in known and key not in found and len(found) < _MOST_RECENT:  # a bench has no data
            found[key] = DataPlace(text, text, "recent")
    return tuple(found.values())


def matching(places: Sequence[DataPlace], typed: str) -> tuple[DataPlace, ...]:
    """The places whose names contain what was typed, names that begin with it first."""
    wanted = typed.lower()
    found = [place for place in places if wanted in place.name.lower()]
    return tuple(sorted(found, key=lambda place: not place.name.lower().startswith(wanted)))


def typed_parts(typed: str) -> tuple[Path | None, str]:
    """The folder that a typed path names, and the beginning of a name in it; no folder for a mere name."""
    before, slash, name = typed.rpartition("/")
    if typed in ("~", ".", ".."):
        before, slash, name = typed, "/", ""
    return (Path(os.path.normpath(absolute_path(user_path(before or "/")))), name) if slash else (None, name)


def path_text(path: Path) -> str:
    """A path as the user would type it: relative within the working directory."""
    here = current_directory()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def shown_folder(folder: Path) -> str:
    """A folder as a title shows it: relative, or from the home directory, where it is within."""
    here, home = current_directory(), user_path("~")
    if folder.is_relative_to(here):
        return f"./{folder.relative_to(here)}/".replace("/./", "/")
    return f"~/{folder.relative_to(home)}/".replace("/./", "/") if folder.is_relative_to(home) else f"{folder}/"


def completed(places: Sequence[DataPlace], typed: str) -> str | None:
    """A typed text, extended by what all names that begin with it share; ``None`` if no name begins with it."""
    _, begun = typed_parts(typed)
    found = [place for place in places if place.name.lower().startswith(begun.lower()) and place.kind != "recent"]
    names = [f"{place.name}/" if place.folder and not place.name.endswith("/") else place.name for place in found]
    if not names:
        return None
    common = os.path.commonprefix(names)  # noqa: RUF071 (of names, not of paths)
    if len(found) == 1 and found[0].folder is None and found[0].text != typed:
        return found[0].text if typed_parts(typed)[0] is None else typed[: len(typed) - len(begun)] + common
    return typed[: len(typed) - len(begun)] + common if len(common) > len(begun) else typed


def _folder(path: Path, kind: str, *, is_data: bool) -> DataPlace:
    return DataPlace(f"{path_text(path)}/", f"{path.name}/", kind, folder=path, is_data=is_data)


def parent(folder: Path) -> Iterator[DataPlace]:
    """The folder above; nothing above the root."""
    if folder.parent != folder:
        yield DataPlace(f"{path_text(folder.parent)}/", "../", "folder", folder=folder.parent, is_data=False)


def _dataset(entry: data.DatasetEntry, name: str) -> DataPlace:
    return DataPlace(name, name, "built in", numbers.count(entry.examples) if entry.examples else "")


def _sort_key(entry: "os.DirEntry[str]") -> str:
    return entry.name.lower()


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _size(entry: "os.DirEntry[str]") -> str:
    try:
        return numbers.short_size(entry.stat().st_size)
    except OSError:
        return ""


def _resolved(text: str) -> str:
    return os.path.normpath(absolute_path(user_path(text))) if "/" in text or "." in text else text
