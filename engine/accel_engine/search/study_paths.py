"""The directory of studies, the names of a study's files, and the address of a storage; without Optuna."""

import os
import re
import tempfile
from pathlib import Path

from accel_engine.errors import UsageError
from accel_engine.run.directory.run_paths import home
from accel_engine.text import suggestion
from accel_engine.user_paths import absolute_path, user_path

DATABASE = "study.db"
"""File in a study's directory with what concerns this machine, and with commands."""

LOCK = "study.lock"
"""File that the process which runs the study holds locked; see :mod:`accel_engine.run.directory.lock`."""

LOG = "log.txt"
"""File with the output of that process."""

ARRAYS = "arrays"
"""Folder with the scripts of arrays of Slurm, and links to the runs of their tasks."""

JOURNAL = "journal.log"
"""Optuna's journal of a study that no other machine shares."""

NAME = re.compile(r"[^\W_][\w.-]{0,59}")
"""Names of studies."""


def studies_directory() -> Path:
    """The directory of all studies; it may not exist yet."""
    return home() / "studies"


def study_directory(name: str) -> Path:
    """The directory of a study, which may not exist.

    Raises:
        UsageError: No study can have this name.
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a search: letters, digits, '.', '-' and '_', up to 60, the first a letter "
            "or a digit"
        )
    return studies_directory() / name


def studies() -> list[Path]:
    """The directories of all studies, newest first."""
    found = [path for path in studies_directory().glob("*") if (path / DATABASE).is_file()]
    return sorted(found, key=lambda path: (path / DATABASE).stat().st_mtime, reverse=True)


def find_study(name: str) -> Path:
    """The directory of an existing study; ``last`` is the newest.

    Raises:
        UsageError: There is no search of this name.
    """
    known = studies()
    if name == "last" and known:
        return known[0]
    directory = study_directory(name)
    if directory not in known:
        names = [path.name for path in known]
        hint = suggestion(name, names) if names else "there are no searches yet"
        raise UsageError(f"there is no search {name!r}: {hint}")
    return directory


def journal_path(storage: str) -> Path | None:
    """The path of a journal file; ``None`` for a database, whose address is a URL."""
    return None if "://" in storage else absolute_path(user_path(storage))


def absolute_storage(storage: str) -> str:
    """The address of a storage for any working directory."""
    return storage if not storage or "://" in storage else str(absolute_path(user_path(storage)))


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
