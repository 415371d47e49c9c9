"""Starts processes of this program that outlive who starts them, and lets one of them do a work alone.

Such a process has its own session and ignores hangups: neither a closed terminal nor a crash of the dashboard, the
command or the engine that started it ends it. It reads no input, and writes what it prints to a log.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine import hangup
from accel_engine.errors import AccelError, RunError, file_errors
from accel_engine.files import open_log

if TYPE_CHECKING:  # it is slow to import, and starting a process does not need it
    from accel_engine.run.directory.lock import WriterLock


def start_detached(
    what: str,
    *arguments: str,
    log: Path | None,
    environment: Mapping[str, str] | None = None,
    streams: int | None = subprocess.DEVNULL,
    close_fds: bool = True,
) -> "subprocess.Popen[str]":
    """Start a detached process; call :func:`leave` unless you wait for its end.

    Args:
        what: What is started, in messages, such as ``the search s``.
        arguments: The arguments of ``python``.
        log: The file to which its output is added; ``None`` if it opens one itself.
        environment: Additional environment variables.
        streams: Its standard streams if there is no ``log``, as :class:`subprocess.Popen` takes them.
        close_fds: Whether it inherits no other descriptors of this process.

    Raises:
        RunError: The log cannot be written, or the system cannot start a process, for example because memory runs out.
    """
    with file_errors(f"cannot write the log of {what}"):
        output = streams if log is None else open_log(log)
    try:
        with hangup.deferred():
            return subprocess.Popen(
                [sys.executable, *arguments],
                stdin=streams if log is None else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | (environment or {}),
                close_fds=close_fds,
                text=True,
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(f"cannot start {what}: {error.strerror}") from error
    finally:
        if log is not None and output is not None:
            os.close(output)


def leave(process: "subprocess.Popen[str]") -> None:
    """Wait for a process no longer: it outlives this one, of which Python would warn at the exit."""
    process.returncode = 0


def work_alone(directory: Path, lock: str, work: "Callable[[WriterLock], int]") -> int:
    """Do the work of a detached process, unless another process does it.

    Args:
        directory: Where the lock is.
        lock: The file that the process which does the work holds locked.
        work: Does the work, and returns the exit status. It may release the lock when it is done.

    Returns:
        The exit status: 1 after an error, which is printed to the log; 0 if another process does the work.
    """
    from accel_engine.run.directory.lock import WriterLock  # see above

    hangup.ignore()
    os.umask(0o077)
    try:
        with WriterLock(directory, lock) as writer_lock:
            return work(writer_lock)
    except BlockingIOError:
        return 0
    except AccelError as error:
        print(f"accel-tui: {error}", file=sys.stderr, flush=True)  # noqa: T201 (this is its log)
        return 1
