"""The directory of studies, and the names of the files of a study."""

import re
from pathlib import Path

from accel_engine.errors import UsageError
from accel_engine.run.directory.run_paths import home
from accel_engine.text import suggestion

DATABASE = "study.db"
"""File in a study's directory with its definition, trials and commands."""

LOCK = "study.lock"
"""File that the process which runs the study holds locked; see :mod:`accel_engine.run.directory.lock`."""

LOG = "log.txt"
"""File with the output of that process."""

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
        UsageError: There is none of this name.
    """
    known = studies()
    if name == "last" and known:
        return known[0]
    directory = study_directory(name)
    if directory not in known:
        names = [path.name for path in known]
        hint = suggestion(name, names) if names else "there is none yet"
        raise UsageError(f"there is no search {name!r}: {hint}")
    return directory
