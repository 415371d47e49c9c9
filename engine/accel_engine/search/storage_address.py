"""Addresses of a search's storage: the path of a journal file, or the URL of a database. Without Optuna."""

import os
import tempfile
from pathlib import Path

from accel_engine.errors import UsageError
from accel_engine.user_paths import user_path


def journal_path(storage: str) -> Path | None:
    """The path of a journal file; ``None`` for a database, whose address is a URL."""
    return None if "://" in storage else user_path(storage).absolute()


def absolute_storage(storage: str) -> str:
    """The address of a storage for any working directory."""
    return storage if not storage or "://" in storage else str(user_path(storage).absolute())


def shown_address(storage: str) -> str:
    """An address without the user, the password and the options of a URL, for messages and other machines."""
    if "://" not in storage:
        return storage
    scheme, _, rest = storage.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def check_journal(storage: str) -> None:
    """Check that a journal file can be written, and its lock beside it; a database is not checked.

    Raises:
        UsageError: Its folder is missing, or it cannot be written.
    """
    path = journal_path(storage)
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"the storage {path} is a folder: give a file in it, such as {path / 'search.log'}")
    if not path.parent.is_dir():
        raise UsageError(f"the storage {path} cannot be written: there is no folder {path.parent}: create it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            if path.exists():
                path.open("ab").close()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"the storage {path} cannot be written: {reason}") from error
