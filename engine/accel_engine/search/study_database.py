"""The part of a search that concerns one machine: ``study.db``, with the address of its study and commands of users.

The process that runs the search writes it; others read it, and add commands. Optuna's storage has all else: what is
searched, and the trials.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.errors import RunError, UsageError
from accel_engine.files import replacing
from accel_engine.json_values import JsonValue, Number, Text, decode, encode
from accel_engine.places import HERE, PlaceRequest
from accel_engine.search.definition import Confirmation
from accel_engine.search.study_paths import DATABASE, JOURNAL
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
    """A command to the process that runs a search."""

    id: int
    """Its row."""
    time: float
    """When it was sent, in seconds since the Unix epoch."""
    who: str
    """Who sent it, as ``user@host``."""
    name: str
    """One of :data:`COMMANDS`."""
    trial: int | None = None
    """Number of the trial, of commands about one."""
    argument: Any = None
    """Epochs of ``prolong``; the number of ``set_trials``; ``None`` of others."""


@dataclass(frozen=True, slots=True)
class StudyPart:
    """The part of a search that concerns only this machine."""

    created: Number
    """When it was created, in seconds since the Unix epoch."""
    member: Text
    """Tells the trials of this machine, and of this program's directory, from others on the same storage."""
    storage: Text = ""
    """Path of a journal file or URL of a database that other machines share; empty for its own journal."""
    limits: Mapping[str, JsonValue] = field(default_factory=dict)
    """Fields of the definition that this machine has its own values of, some of :data:`LIMITS`."""
    spent: Number = 0.0
    """Seconds for which the search has run, by all its processes so far."""
    spent_at_end: Number = 0.0
    """The same when the last trial ended; 0 if unknown."""
    ended: Mapping[str, JsonValue] | None = None
    """The object of its last line of JSON, ``search_ended``; ``None`` while it is not at its end."""
    confirmation: Confirmation | None = None
    """The best plan, trained again; ``None`` before."""
    place: Text = HERE
    """Where its trials train, as :func:`accel_engine.places.parse_place` takes it."""
    place_request: PlaceRequest = field(default_factory=PlaceRequest)
    """What each asks of that place."""
    lost_members: tuple[Text, ...] = ()
    """The members that no longer respond."""


class StudyDatabase(CommandDatabase):
    """An open ``study.db``; its methods may be called from one thread at a time.

    Args:
        directory: The search's directory.

    Raises:
        RunError: There is no search, it cannot be used, or has another format. All methods raise it, too.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        if not (directory / DATABASE).is_file():
            raise RunError(f"no search in {directory}")
        super().__init__(directory / DATABASE, _title(directory), SCHEMA_VERSION)

    @property
    def part(self) -> StudyPart:
        """The stored part of this machine."""
        with self._explained():
            return decode(self.meta("part"), StudyPart)

    def update(self, **changes: Any) -> None:
        """Change fields of :attr:`part`."""
        with self.transaction():
            self.set_meta(part=encode(replace(self.part, **changes)))

    @property
    def address(self) -> str:
        """Path of the journal file, or URL of the database, with the study."""
        return self.part.storage or str(self.directory / JOURNAL)

    def request(self, name: str, trial: int | None = None, argument: Any = None) -> int:
        """Send a command to the process that runs the search; returns its id."""
        return self.add_command(name, encode([trial, argument]))

    def commands(self) -> list[StudyCommand]:
        """The commands without an answer, oldest first."""
        return [self.decode("command", row.id, _decoded, row) for row in self.unanswered(CommandRow)]


def create_study_database(directory: Path, storage: str, **fields: Any) -> None:
    """Create the file.

    Args:
        directory: The search's directory.
        storage: As :attr:`StudyPart.storage`.
        fields: Other fields of :class:`StudyPart`.

    Raises:
        RunError: The file cannot be written.
    """
    part = StudyPart(clock.now(), uuid.uuid4().hex, storage, **fields)
    with database_errors(_title(directory), WRITING), replacing(directory / DATABASE) as unfinished:
        create_database(unfinished, COMMAND, schema=SCHEMA_VERSION, part=encode(part))


def exists_already(name: str) -> UsageError:
    """The error of a second search of the same name."""
    return UsageError(f"there is a search {name} already: continue it with --resume {name}, or choose another --name")


def _decoded(row: CommandRow) -> StudyCommand:
    trial, argument = decode(row.argument, tuple[int | None, JsonValue])
    return StudyCommand(row.id, row.time, row.who, row.name, trial, argument)


def _title(directory: Path) -> str:
    return f"the search {directory.name}"
