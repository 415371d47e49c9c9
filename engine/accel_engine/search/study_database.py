"""A study on disk: ``study.db``, which the process that runs the study writes; others read, and add commands."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.errors import RunError, UsageError
from accel_engine.files import replacing
from accel_engine.json_values import JsonValue, decode, encode, parse_object
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import make_private
from accel_engine.search.definition import Confirmation, StudyDefinition
from accel_engine.search.study_paths import DATABASE, LOCK
from accel_engine.search.trial import Trial, TrialReport
from accel_engine.versioned_database import (
    COMMAND,
    WRITING,
    CommandDatabase,
    CommandRow,
    create_database,
    database_errors,
)

SCHEMA_VERSION = 1
"""The version of the format; see *Compatibility* in ``CONTRIBUTING.md``."""

TABLES = f"""
CREATE TABLE trial (number INTEGER PRIMARY KEY, changed INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX trial_changed ON trial (changed);
CREATE TABLE report (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    trial INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    step INTEGER NOT NULL,
    time REAL NOT NULL,
    value REAL NOT NULL,
    UNIQUE (trial, step)
);
{COMMAND}"""
"""``trial.changed`` grows with each change of any trial, so that a reader asks for those since its last look."""


def create_study(directory: Path, definition: StudyDefinition) -> None:
    """Create a study.

    Raises:
        UsageError: There is one of this name.
        RunError: It cannot be written.
    """
    make_private(directory)
    try:
        with WriterLock(directory, LOCK):  # against another process that creates it now
            if (directory / DATABASE).exists():
                raise exists_already(directory.name)
            _create(directory, definition)
    except BlockingIOError:
        raise exists_already(directory.name) from None


def exists_already(name: str) -> UsageError:
    """The error of a second search of the same name."""
    return UsageError(f"there is a search {name} already: continue it with --resume {name}, or choose another --name")


def _create(directory: Path, definition: StudyDefinition) -> None:
    meta = {"schema": SCHEMA_VERSION, "definition": encode(definition), "created": clock.now(), "changes": 0}
    with database_errors(_title(directory), WRITING), replacing(directory / DATABASE) as unfinished:
        create_database(unfinished, TABLES, **meta, member=uuid.uuid4().hex)


COMMANDS = {
    "stop": "Stop the search: live trials are stopped with a checkpoint, and can be continued",
    "stop_trial": "Stop a trial with a checkpoint; what it reached counts",
    "prune": "Prune a trial now",
    "prolong": "Continue an ended trial from its checkpoint for more epochs",
    "clone": "Train a trial's plan again with another seed",
    "pin": "Never prune a trial",
    "unpin": "Prune a trial as any other again",
    "set_range": "Change the range or the choices of a parameter for the trials to come",
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
        argument: Epochs of ``prolong``; the number of ``set_trials``; for ``set_range`` the text of the option
            ``--over``, such as ``learning_rate=1e-4..1e-2:log``; ``None`` of others.
    """

    id: int
    time: float
    who: str
    name: str
    trial: int | None = None
    argument: Any = None


class StudyDatabase(CommandDatabase):
    """An open study; its methods may be called from one thread at a time.

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
    def definition(self) -> StudyDefinition:
        """What is searched; a command may change ranges and the number of trials."""
        with self._explained():
            return decode(self.meta("definition"), StudyDefinition)

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
        """What tells this study's trials from those of others on the same storage."""
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
        self.set_meta(spent=seconds)
        if is_trial_end:
            self.set_meta(spent_at_end=seconds)

    def set_definition(self, definition: StudyDefinition) -> None:
        """Replace the definition."""
        self.set_meta(definition=encode(definition))

    def set_ended(self, ended: Mapping[str, Any] | None) -> None:
        """Note how it ended; ``None`` if it goes on."""
        self.set_meta(ended=None if ended is None else encode(ended))

    def set_confirmation(self, confirmation: Confirmation) -> None:
        """Note what confirms the best plan."""
        self.set_meta(confirmation=encode(confirmation))

    def changes(self) -> int:
        """A number that grows with each change of a trial."""
        with self._explained():
            return int(self.meta("changes") or 0)

    def put_trial(self, trial: Trial) -> None:
        """Add or replace a trial."""
        body = encode(trial)
        with self.transaction(), self._explained(WRITING):
            self._database.execute("UPDATE meta SET value = value + 1 WHERE key = 'changes'")
            changed = self.meta("changes")
            self._database.execute("INSERT OR REPLACE INTO trial VALUES (?, ?, ?)", (trial.number, changed, body))

    def trials(self, since: int = 0) -> list[Trial]:
        """The trials that have changed since :meth:`changes` had a value, by number."""
        with self._explained():
            rows = self._database.execute("SELECT body FROM trial WHERE changed > ? ORDER BY number", (since,))
            return [decode(body, Trial) for (body,) in rows]

    def add_report(self, report: TrialReport) -> None:
        """Add the monitor's value at a step; a continued trial replaces those that it trains again."""
        with self._explained(WRITING):
            self._database.execute(
                "INSERT OR REPLACE INTO report (trial, epoch, step, time, value) VALUES (?, ?, ?, ?, ?)",
                (report.trial, report.epoch, report.step, report.time, report.value),
            )

    def reports(self, after: int = 0) -> tuple[int, list[TrialReport]]:
        """Reports after one, in the order in which they came; with the number to ask with for later ones."""
        with self._explained():
            query = "SELECT id, trial, epoch, step, time, value FROM report WHERE id > ? ORDER BY id"
            rows = self._database.execute(query, (after,)).fetchall()
        return (rows[-1][0] if rows else after), [TrialReport(*row[1:]) for row in rows]

    def request(self, name: str, trial: int | None = None, argument: Any = None) -> int:
        """Send a command to the process that runs the study; returns its id."""
        return self.add_command(name, encode([trial, argument]))

    def commands(self) -> list[StudyCommand]:
        """The commands without an answer, oldest first."""
        return [self.decode("command", row.id, _decoded, row) for row in self.unanswered(CommandRow)]


def _decoded(row: CommandRow) -> StudyCommand:
    trial, argument = decode(row.argument, tuple[int | None, JsonValue])
    return StudyCommand(row.id, row.time, row.who, row.name, trial, argument)


def _title(directory: Path) -> str:
    return f"the search {directory.name}"
