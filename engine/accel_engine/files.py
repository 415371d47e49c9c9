"""Writes files atomically, so that a reader finds the old file or the new one, whole; opens regular files only."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path in the same directory, whose file replaces ``path`` unless the block raises.

    Args:
        path: The file to replace.
        temporary: The temporary path; by default, one for each process, whose file stays if the process is killed.

    Raises:
        OSError: The file cannot be replaced.
    """
    temporary = temporary or path.with_name(f".{os.getpid()}.{path.name}")  # some formats are chosen by the suffix
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def link_or_copy(source: Path, target: Path) -> None:
    """Link a file that is never changed, or copy it where the system has no links.

    Raises:
        OSError: The file cannot be read or written.
    """
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copyfile(source, target)


def private_directory(path: Path) -> None:
    """Create a directory, and those above it that are missing, which only their owner can enter under any umask.

    Raises:
        OSError: A directory cannot be created.
    """
    for each in reversed((path, *path.parents)):
        if not each.exists():  # ``parents`` of mkdir would create those above with the mode that the umask leaves
            each.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(exist_ok=True)


def open_log(path: Path) -> int:
    """Open a log to add to it; only its owner can read one that this creates. Returns a descriptor.

    Raises:
        OSError: The log cannot be opened.
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def regular(path: Path, *, or_pipe: bool = False) -> Path:
    """Return the path of a regular file, or of a link to one.

    Opening a pipe may wait for ever, a device may have no end, and names can be given to both.

    Args:
        path: The path.
        or_pipe: Whether a pipe is allowed, too, such as the output of another command.

    Raises:
        OSError: The path has something else, or nothing.
    """
    mode = path.stat().st_mode
    right = stat.S_ISREG(mode) or (or_pipe and stat.S_ISFIFO(mode))
    if not right and not path.samefile(os.devnull):  # which is an empty file to many users
        kind = next(kind for is_kind, kind in _KINDS if is_kind(mode))
        raise OSError(errno.EINVAL, f"it is a {kind}, not a file", str(path))
    return path


_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
    (lambda _: True, "device"),
)
