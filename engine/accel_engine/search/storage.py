"""Optuna's storage of searches, which machines may share: a journal file or a database."""

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import DuplicatedStudyError, OptunaError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.study import Study, StudyDirection

from accel_engine import clock
from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.json_values import Number, Text, convert, to_plain
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import make_private
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.study_database import create_study_database, exists_already
from accel_engine.search.study_paths import DATABASE, JOURNAL, LOCK, journal_path, shown_address

BLOCK = 4096
"""Bytes that are read at a time to find the end of a journal's last line."""

LOCK_SUFFIX = ".lock"
"""Ends the name of the link with which Optuna locks a journal."""

PACKAGES = {"psycopg": "psycopg[binary]", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}
"""Packages of databases by the module that is imported, where the names differ."""

optuna.logging.set_verbosity(optuna.logging.ERROR)


def open_storage(storage: str, *, is_new: bool = False, is_alone: bool = False) -> BaseStorage:
    """Open a storage.

    Args:
        storage: Path of a journal file, or URL of a database.
        is_new: Whether a journal file is created if there is none, in a folder that exists.
        is_alone: Whether no other process writes the journal: what a killed one has left of its lock is removed.

    Raises:
        RunError: The storage cannot be reached, read or written.
        UsageError: The address is wrong.
    """
    path = journal_path(storage)
    with reaching(storage):
        if path is None:
            return RDBStorage(storage)
        if not is_new:
            path.stat()
        if is_alone:
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
"""Begins the names of attributes of Optuna's study with a member's :class:`Heartbeat`; ends with the member."""

HEARTBEAT_SECONDS = 20.0
"""Seconds between two heartbeats of a member."""

LOST_SECONDS = 120.0
"""Seconds without a heartbeat after which a member is lost."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Says that a member runs."""

    time: Number
    """When, by the clock of its machine, in seconds since the Unix epoch."""
    host: Text
    """Name of its machine."""


class Members:
    """The members of a search: the processes that run it, each on its machine.

    Optuna's own heartbeats are of trials, which they fail for good, and journal files have none. A member is lost if it
    has no new heartbeat for :data:`LOST_SECONDS` of this machine's clock, as clocks of machines differ. One that
    continues is no longer lost.

    Args:
        study: Optuna's study.
        own: This member.
        now: A monotonic clock in seconds.
    """

    def __init__(self, study: Study, own: str, now: Callable[[], float] = time.monotonic) -> None:
        self._study = study
        self._own = own
        self._now = now
        self._noted = -HEARTBEAT_SECONDS
        self._changed: dict[str, tuple[object, float]] = {}

    def update(self) -> None:
        """Write a heartbeat of this member when it is due, and read the others."""
        now = self._now()
        if now - self._noted >= HEARTBEAT_SECONDS:
            self._noted = now
            own = Heartbeat(clock.now(), socket.gethostname())
            self._study.set_user_attr(ALIVE + self._own, to_plain(own))
        for member, heartbeat in heartbeats(self._study.user_attrs).items():
            if self._changed.get(member, (None, 0.0))[0] != heartbeat:
                self._changed[member] = (heartbeat, now)

    def is_lost(self, member: str) -> bool:
        """Whether a member is lost."""
        _, changed = self._changed.setdefault(member, (None, self._now()))
        return member != self._own and self._now() - changed > LOST_SECONDS

    @property
    def lost(self) -> tuple[str, ...]:
        """The lost members."""
        return tuple(filter(self.is_lost, sorted(self._changed)))


def heartbeats(attributes: Mapping[str, Any]) -> dict[str, Heartbeat]:
    """The last heartbeat of each member, in attributes of Optuna's study."""
    return {
        name.removeprefix(ALIVE): convert(value, Heartbeat)
        for name, value in attributes.items()
        if name.startswith(ALIVE)
    }


DEFINITION = "accel_tui_definition"
"""Attribute of Optuna's study: what is searched."""


def define_study(study: Study, definition: StudyDefinition) -> None:
    """Write a definition to Optuna's study, without the storage's address, which may have a password."""
    study.set_user_attr(DEFINITION, to_plain(replace(definition, storage="")))


def create_study(directory: Path, definition: StudyDefinition, **part: Any) -> None:
    """Create a search: Optuna's study in its storage, then the part of this machine.

    Args:
        directory: The search's directory.
        definition: What is searched.
        part: Fields of the part of this machine.

    Raises:
        UsageError: There is a search of this name, here or on the storage.
        RunError: The search cannot be written, or the storage cannot be reached.
    """
    if (directory / DATABASE).exists():
        raise exists_already(directory.name)
    if definition.storage:
        _create_on(definition.storage, definition)
    make_private(directory)
    try:
        with WriterLock(directory, LOCK):  # against another process that creates it now
            if (directory / DATABASE).exists():
                raise exists_already(directory.name)
            if not definition.storage:
                (directory / JOURNAL).unlink(missing_ok=True)  # of a process that was killed here
                _create_on(str(directory / JOURNAL), definition)
            create_study_database(directory, definition.storage, **part)
    except BlockingIOError:
        raise exists_already(directory.name) from None


def _create_on(storage: str, definition: StudyDefinition) -> None:
    directions = [
        StudyDirection.MAXIMIZE if each.maximize else StudyDirection.MINIMIZE for each in definition.objectives
    ]
    with reaching(storage):
        opened = open_storage(storage, is_new=True)
        try:
            study = optuna.create_study(storage=opened, study_name=definition.name, directions=directions)
        except DuplicatedStudyError:
            shown = shown_address(storage)
            raise UsageError(
                f"the storage {shown} has a search {definition.name} already: "
                f"join it with --join {shown}, or choose another --name"
            ) from None
        define_study(study, definition)


def load_definition(storage: str, name: str = "") -> StudyDefinition:
    """The definition of a search that another machine has begun.

    Args:
        storage: Path of a journal file, or URL of a database.
        name: Name of the search; empty for the only one.

    Raises:
        RunError: The storage cannot be reached or read.
        UsageError: The storage has no search, several, or no search of this name.
    """
    path, shown = journal_path(storage), shown_address(storage)
    if path is not None and not path.is_file():
        raise UsageError(f"there is no storage {shown}: begin a search with --storage {shown} first")
    with reaching(storage):
        summaries = optuna.get_all_study_summaries(open_storage(storage))
    found = {each.study_name: each.user_attrs[DEFINITION] for each in summaries if DEFINITION in each.user_attrs}
    if not found:
        raise UsageError(f"the storage {shown} has no search of accel-tui")
    if not name and len(found) > 1:
        raise UsageError(f"the storage {shown} has several searches: give --name {' or --name '.join(found)}")
    if name and name not in found:
        raise UsageError(f"the storage {shown} has no search {name!r}; it has {', '.join(found)}")
    with reaching(storage):
        return replace(convert(found[name or next(iter(found))], StudyDefinition), storage=storage)
