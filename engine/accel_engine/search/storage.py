"""Optuna's storage of searches, which machines may share: a journal file or a database."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import optuna
from optuna.exceptions import OptunaError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.study import Study

from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.json_values import decode, encode
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.study_paths import journal_path, shown_address

BLOCK = 4096
"""Bytes that are read at a time to find the end of a journal's last line."""

LOCK_SUFFIX = ".lock"
"""Ends the name of the link with which Optuna locks a journal."""

PACKAGES = {"psycopg": "psycopg[binary]", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}
"""Packages of databases by the module that is imported, where the names differ."""

optuna.logging.set_verbosity(optuna.logging.ERROR)


def open_storage(storage: str, *, is_own: bool = False) -> BaseStorage:
    """Open a storage; a journal file is created, in a folder that exists.

    Args:
        storage: Path of a journal file, or URL of a database.
        is_own: Whether no other process has the journal open: what a killed one has left of its lock is removed.

    Raises:
        RunError: It cannot be reached, read or written.
        UsageError: The address is wrong.
    """
    path = journal_path(storage)
    with reaching(storage):
        if path is None:
            return RDBStorage(storage)
        if is_own:
            path.with_name(path.name + LOCK_SUFFIX).unlink(missing_ok=True)
        return JournalStorage(JournalFileBackend(str(path), _JournalLock(path)))


class _JournalLock(JournalFileSymlinkLock):
    """Optuna's lock of a journal, which is held to append lines; removes the end of one that was not completed.

    A full disk or a killed process leaves such a line. Lines after it would make the journal unreadable.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    def acquire(self) -> bool:
        """Wait for the lock, then remove an incomplete line."""
        is_acquired = super().acquire()
        try:
            _cut_unfinished_line(self._path)
        except BaseException:
            self.release()
            raise
        return is_acquired


def _cut_unfinished_line(path: Path) -> None:
    """Remove what is after the last line end of a journal."""
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        start, found = end, b""
        while start and b"\n" not in found:
            start = max(0, start - BLOCK)
            file.seek(start)
            found = file.read(BLOCK)
        complete = start + found.rfind(b"\n") + 1
        if complete < end:
            file.truncate(complete)


@contextmanager
def reaching(storage: str) -> Iterator[None]:
    """Raise errors of a storage as errors for users."""
    name = shown_address(storage)
    try:
        yield
    except AccelError:
        raise
    except ImportError as error:
        raise UsageError(f"the storage {name} needs {_missing_package(error)}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise RunError(f"the storage {name} cannot be reached: {reason}; the search can be continued") from error
    except (OptunaError, ValueError, KeyError, RuntimeError) as error:
        raise RunError(f"the storage {name} cannot be used: {_first_line(error, storage)}") from error
    except Exception as error:  # of the database's library, such as sqlalchemy.exc.OperationalError
        if not type(error).__module__.startswith("sqlalchemy"):
            raise
        raise RunError(f"the storage {name} cannot be reached: {_first_line(error, storage)}") from error


def _missing_package(error: ImportError) -> str:
    """The package of a database that cannot be imported, with the command that installs it."""
    cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    if not cause.name:
        return f"a package that is missing: {cause}"
    package = PACKAGES.get(cause.name, cause.name)
    return f"the package {package}, which is missing: pip install '{package}'"


def _first_line(error: BaseException, storage: str) -> str:
    text = str(error.args[0] if error.args else error).strip().partition("\n")[0]
    return text.replace(storage, shown_address(storage))


ALIVE = "accel_tui_alive:"
"""Begins the names of attributes of Optuna's study that members change again and again; ends with the member."""

NOTE_SECONDS = 20.0
"""Seconds after which a member changes its attribute."""

LOST_SECONDS = 120.0
"""Seconds without a change after which a member is lost."""


class Members:
    """The members of a search.

    A member is lost if its attribute has not changed for :data:`LOST_SECONDS` of this machine's clock, as clocks of
    machines differ. One that continues is no longer lost.

    Args:
        study: Optuna's study.
        own: This member.
        now: A monotonic clock in seconds.
    """

    def __init__(self, study: Study, own: str, now: Callable[[], float] = time.monotonic) -> None:
        self._study = study
        self._own = own
        self._now = now
        self._noted = -NOTE_SECONDS
        self._changed: dict[str, tuple[object, float]] = {}

    def update(self) -> None:
        """Note that this member is alive, and read which others are."""
        now = self._now()
        if now - self._noted >= NOTE_SECONDS:
            self._noted = now
            self._study.set_user_attr(ALIVE + self._own, time.time())
        for name, value in self._study.user_attrs.items():
            member = name.removeprefix(ALIVE)
            if member != name and self._changed.get(member, (None, 0.0))[0] != value:
                self._changed[member] = (value, now)

    def is_lost(self, member: str) -> bool:
        """Whether a member is lost."""
        _, changed = self._changed.setdefault(member, (None, self._now()))
        return member != self._own and self._now() - changed > LOST_SECONDS


DEFINITION = "accel_tui_definition"
"""Attribute of Optuna's study: the search."""


def shared_text(definition: StudyDefinition) -> str:
    """A definition as the storage has it, without the storage's address, which may have a password."""
    return encode(replace(definition, storage=""))


def names_on(storage: str) -> list[str]:
    """The names of the studies on a storage; none if a journal does not exist yet.

    Raises:
        RunError: The storage cannot be reached or read.
    """
    path = journal_path(storage)
    if path is not None and not path.is_file():
        return []
    with reaching(storage):
        return optuna.get_all_study_names(open_storage(storage))


def load_definition(storage: str, name: str = "") -> StudyDefinition:
    """The definition of a search that another machine has begun.

    Args:
        storage: Path of a journal file, or URL of a database.
        name: Name of the search; empty for the only one.

    Raises:
        RunError: The storage cannot be reached or read.
        UsageError: It has no search, several, or none of this name.
    """
    path, shown = journal_path(storage), shown_address(storage)
    if path is not None and not path.is_file():
        raise UsageError(f"there is no storage {shown}: begin a search with --storage {shown} first")
    with reaching(storage):
        opened = open_storage(storage)
        found = {study.study_name: study.user_attrs for study in optuna.get_all_study_summaries(opened)}
    ours = [each for each, attributes in found.items() if DEFINITION in attributes]
    if not ours:
        raise UsageError(f"the storage {shown} has no search of accel-tui")
    if not name and len(ours) > 1:
        raise UsageError(f"the storage {shown} has several searches: give --name {' or --name '.join(ours)}")
    if name and name not in ours:
        raise UsageError(f"the storage {shown} has no search {name!r}; it has {', '.join(ours)}")
    try:
        return replace(decode(found[name or ours[0]][DEFINITION], StudyDefinition), storage=storage)
    except ValueError as error:
        raise RunError(f"the search on the storage {shown} cannot be read: {error}") from error
