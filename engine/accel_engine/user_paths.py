"""Looks up the paths that users name; what the system refuses to look up is not there, and never an exception.

``Path.is_file`` and its kind raise an error for a name that is too long or in a directory that cannot be searched, and
``Path.expanduser`` for a user that does not exist; ``Path.cwd``, ``Path.absolute`` and ``Path.resolve`` for a working
directory that was removed, and the last one for links that lead in a circle.
"""

import os
import stat
from pathlib import Path


def user_path(text: str | Path) -> Path:
    """The path that a user has given, ``~`` replaced by the home directory if there is one."""
    return Path(os.path.expanduser(text))


def current_directory() -> Path:
    """The working directory; ``.`` if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return Path()


def absolute_path(path: Path) -> Path:
    """A path from the root; as it is, if it is relative to a working directory that was removed."""
    return current_directory() / path


def resolved_path(path: Path) -> Path:
    """A path from the root without links and ``..``, as far as they can be followed."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):  # a ValueError for a name with a null character
        return absolute_path(path)


def exists(path: Path) -> bool:
    """Whether a path names something."""
    return os.path.exists(path)


def is_file(path: Path) -> bool:
    """Whether a path names a regular file, or a link to one."""
    return os.path.isfile(path)


def is_directory(path: Path) -> bool:
    """Whether a path names a directory, or a link to one."""
    return os.path.isdir(path)


def is_named_pipe(path: Path) -> bool:
    """Whether a path names a pipe, other than those that a shell makes for the output of a command."""
    try:
        return stat.S_ISFIFO(path.stat().st_mode) and not str(path).startswith(("/dev/fd/", "/proc/"))
    except (OSError, ValueError):
        return False


def no_file(path: Path) -> str:
    """Why a path names no regular file; empty if it names one."""
    try:
        return "" if stat.S_ISREG(path.stat().st_mode) else "no such file"
    except (FileNotFoundError, ValueError):  # a ValueError for a name with a null character
        return "no such file"
    except OSError as error:
        return str(error.strerror)
