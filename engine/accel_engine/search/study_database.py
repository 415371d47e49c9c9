"""The part of a search that concerns one machine: ``study.db``, with the address of its study and commands of users.

The process that runs the search writes it; others read it, and add commands. Optuna's storage has all else: what is
searched, and the trials.
"""

import sqlite3
import uuid
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.errors import RunError, UsageError
from accel_engine.files import replacing
from accel_engine.json_values import JsonValue, decode, encode, parse_object
from accel_engine.run.engine.commands import current_user
from accel_engine.search.definition import Confirmation
from accel_engine.search.study_paths import DATABASE, JOURNAL
from accel_engine.versioned_database import META, WRITING, VersionedDatabase, database_errors

SCHEMA_VERSION = 1
"""The version of the format; see *Compatibility* in ``CONTRIBUTING.md``."""

TABLES = f"""
{META};
CREATE TABLE command (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    who TEXT NOT NULL,
    name TEXT NOT NULL,
    trial INTEGER,
    argument TEXT,
    answered REAL,
    obeyed INTEGER,
    answer TEXT
);
"""


def create_study_database(directory: Path, storage: str, **limits: Any) -> None:
    """Create the file.

    Args:
        directory: The search's directory.
        storage: Path of a journal file or URL of a database that other machines share; empty for its own journal.
        limits: As :attr:`StudyDatabase.limits`.

    Raises:
        RunError: It cannot be written.
    """
    with database_errors(_title(directory), WRITING), replacing(directory / DATABASE) as unfinished:
        unfinished.touch(mode=0o600)
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(TABLES)
            meta = {"schema": SCHEMA_VERSION, "created": clock.now(), "member": uuid.uuid4().hex}
            meta |= {"storage": storage, "limits": encode(limits)}
            database.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())


def exists_already(name: str) -> UsageError:
    """The error of a second search of the same name."""
    return UsageError(f"there is a search {name} already: continue it with --resume {name}, or choose another --name")


LIMITS = ("at_once", "within")
"""Fields of a search's definition that may differ from machine to machine."""

COMMANDS = {
    "stop": "Stop the search: live trials are stopped with a checkpoint, and can be continued",
    "stop_trial": "Stop a trial with a checkpoint; what it reached counts",
    "prune": "Prune a trial now",
    "prolong": "Continue an ended trial from its checkpoint for more epochs",
    "set_trials": "Change the number of trials",
}
"""Commands by name, with what is done."""


@dataclass(frozen=True, slots=True)
class StudyCommand:
    """A command to the process that runs a study.

    Attributes:
        id: Its row.
        time: When it was sent, in seconds since the Unix epoch.
        who: Who sent it, as ``user@host``.
        name: One of :data:`COMMANDS`.
        trial: Number of the trial, of commands about one.
        argument: Epochs of ``prolong``; the number of ``set_trials``; ``None`` of others.
    """

    id: int
    time: float
    who: str
    name: str
    trial: int | None = None
    argument: Any = None


class StudyDatabase(VersionedDatabase):
    """An open ``study.db``; its methods may be called from one thread at a time.

    Args:
        directory: The study's directory.

    Raises:
        RunError: There is no study, it cannot be used, or has another format. All methods raise it, too.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        if not (directory / DATABASE).is_file():
            raise RunError(f"no search in {directory}")
        super().__init__(directory / DATABASE, _title(directory), SCHEMA_VERSION, synchronous="NORMAL")

    @property
    def is_shared(self) -> bool:
        """Whether other machines may have the storage open."""
        return bool(self.meta("storage"))

    @property
    def storage(self) -> str:
        """Path of a journal file, or URL of a database, with the study."""
        return str(self.meta("storage") or self.directory / JOURNAL)

    @property
    def limits(self) -> Mapping[str, Any]:
        """Fields of the definition that this machine has its own values of, some of :data:`LIMITS`."""
        with self._explained():
            return parse_object(self.meta("limits"))

    def set_limits(self, limits: Mapping[str, Any]) -> None:
        """Replace some of :attr:`limits`."""
        self.set_meta("limits", encode({**self.limits, **limits}))

    @property
    def created(self) -> float:
        """When it was created, in seconds since the Unix epoch."""
        with self._explained():
            return float(self.meta("created"))

    @property
    def ended(self) -> Mapping[str, Any] | None:
        """The object of its last line of JSON, ``search_ended``; ``None`` while it is not at its end."""
        with self._explained():
            text = self.meta("ended")
            return parse_object(text) if text else None

    @property
    def confirmation(self) -> Confirmation | None:
        """The best plan, trained again; ``None`` before."""
        with self._explained():
            text = self.meta("confirmation")
            return decode(text, Confirmation) if text else None

    @property
    def member(self) -> str:
        """Tells the trials of this machine, and of this program's directory, from others on the same storage."""
        with self._explained():
            return str(self.meta("member") or "")

    @property
    def spent(self) -> float:
        """Seconds for which the search has run, by all its processes so far."""
        with self._explained():
            return float(self.meta("spent") or 0.0)

    @property
    def spent_at_end(self) -> float:
        """For how many seconds the search had run when the last trial ended; 0 if that is unknown."""
        with self._explained():
            return float(self.meta("spent_at_end") or 0.0)

    def set_spent(self, seconds: float, *, is_trial_end: bool = False) -> None:
        """Note for how long the search has run, and whether a trial has just ended."""
        self.set_meta("spent", seconds)
        if is_trial_end:
            self.set_meta("spent_at_end", seconds)

    def set_ended(self, ended: Mapping[str, Any] | None) -> None:
        """Note how it ended; ``None`` if it goes on."""
        self.set_meta("ended", None if ended is None else encode(ended))

    @property
    def lost_members(self) -> frozenset[str]:
        """The members that no longer respond, by what the process of this search has seen."""
        with self._explained():
            return frozenset(decode(self.meta("lost") or "[]", tuple[str, ...]))

    def set_lost_members(self, members: Collection[str]) -> None:
        """Note which members no longer respond."""
        self.set_meta("lost", encode(sorted(members)))

    def set_confirmation(self, confirmation: Confirmation) -> None:
        """Note what confirms the best plan."""
        self.set_meta("confirmation", encode(confirmation))

    def request(self, name: str, trial: int | None = None, argument: Any = None) -> int:
        """Send a command to the process that runs the study; returns its id."""
        with self._explained(WRITING):
            row = self._database.execute(
                "INSERT INTO command (time, who, name, trial, argument) VALUES (?, ?, ?, ?, ?)",
                (clock.now(), current_user(), name, trial, encode(argument)),
            )
            return int(row.lastrowid or 0)

    def unanswered(self) -> list[StudyCommand]:
        """The commands without an answer, oldest first."""
        with self._explained():
            query = "SELECT id, time, who, name, trial, argument FROM command WHERE answered IS NULL ORDER BY id"
            rows = self._database.execute(query).fetchall()
            return [
                StudyCommand(number, time, who, command, trial, decode(argument, JsonValue))
                for number, time, who, command, trial, argument in rows
            ]

    def answer(self, command: int, answer: str, *, obeyed: bool) -> None:
        """Answer a command."""
        with self._explained(WRITING):
            self._database.execute(
                "UPDATE command SET answered = ?, obeyed = ?, answer = ? WHERE id = ?",
                (clock.now(), int(obeyed), answer, command),
            )

    def answer_to(self, command: int) -> tuple[bool, str] | None:
        """Whether a command was obeyed, and the answer; ``None`` before there is one."""
        with self._explained():
            query = "SELECT obeyed, answer FROM command WHERE id = ? AND answered IS NOT NULL"
            row = self._database.execute(query, (command,)).fetchone()
        return (bool(row[0]), str(row[1])) if row else None


def _title(directory: Path) -> str:
    return f"the search {directory.name}"
