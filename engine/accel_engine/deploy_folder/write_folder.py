"""Moves a folder to its path; files there that accel-tui has not written stay, unless a new one has the same name."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import UsageError, file_errors
from accel_engine.json_values import Text, decode_file, encode
from accel_engine.user_paths import exists, is_directory
from accel_engine.version import __version__

MARK = ".accel-tui-folder.json"
"""The file that lists what this program has written into a folder."""

_CACHE = "__pycache__"


@dataclass(frozen=True, slots=True)
class Mark:
    """The contents of :data:`MARK`."""

    accel_tui: Text
    """The version of this program."""
    files: tuple[Text, ...]
    """The paths of the files, relative to the folder."""


def check_folder(path: Path, *, replaces: bool) -> None:
    """Check that a folder may be written to a path.

    Raises:
        UsageError: The path has a file, or a folder with files that may not be replaced.
    """
    if not exists(path):
        return
    if not is_directory(path):
        raise UsageError(f"{path} is a file: choose another folder")
    with file_errors(f"cannot read {path}", UsageError):
        is_empty = not any(path.iterdir())
    if is_empty:
        return
    if _mark_of(path) is None:
        raise UsageError(f"{path} has files that accel-tui did not write: choose a new or empty folder")
    if not replaces:
        raise UsageError(f"{path} was written before: choose another folder, or replace its files with --replace")


def _mark_of(path: Path) -> Mark | None:
    return decode_file(path / MARK, Mark)


@contextmanager
def writing_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder, whose files are moved to ``path`` unless the block raises.

    What this program has written there before is removed; other files stay, unless a new one has the same name.

    Raises:
        RunError: The files cannot be written there.
    """
    path = path.absolute()
    with file_errors(f"cannot write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as name:
            folder = Path(name, "folder")
            folder.mkdir()
            yield folder
            for cache in list(folder.rglob(_CACHE)):
                shutil.rmtree(cache)
            files = sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if not each.is_dir())
            (folder / MARK).write_text(encode(Mark(__version__, (*files, MARK))) + "\n", "utf-8")
            _place(folder, path)


def _place(folder: Path, path: Path) -> None:
    """Move the files of a folder to a path, in place of the files listed in its mark."""
    umask = os.umask(0o077)
    os.umask(umask)
    for each in (folder, *folder.rglob("*")):
        is_executable = each.is_dir() or each.suffix == ".sh"
        each.chmod((0o777 if is_executable else 0o666) & ~umask)  # the container's user has to read them, too
    previous = _mark_of(path)
    for name in previous.files if previous else ():
        _remove(path, Path(name))
    path.mkdir(exist_ok=True)
    for each in sorted(folder.rglob("*")):
        to = path / each.relative_to(folder)
        if each.is_dir():
            to.mkdir(exist_ok=True)
            to.chmod(0o777 & ~umask)
        else:
            each.replace(to)


def _remove(path: Path, name: Path) -> None:
    """Remove a file that this program has written, and folders that are empty then."""
    if name.is_absolute() or ".." in name.parts:
        return  # somebody has changed the mark
    (path / name).unlink(missing_ok=True)
    for above in list(name.parents)[:-1]:
        shutil.rmtree(path / above / _CACHE, ignore_errors=True)
        try:
            (path / above).rmdir()
        except OSError:
            return
