"""A SQLite file of the program: its version, its rows, and commands to the process that writes it.

Runs, searches and the queue are such files. SQLite in WAL mode lets one process write while any number of others read.
All errors are in words for users: what cannot be read or written now is a :exc:`DatabaseError`, and what is damaged a
:exc:`RunError` that names the file, the table and the row.
"""

import getpass
import os
import re
import socket
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias, TypeVar
from urllib.parse import quote_from_bytes

import msgspec

from accel_engine import clock
from accel_engine.errors import DatabaseError, RunError

META = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID"
"""The table of values by name. One of them is ``schema``, the version of the format."""

COMMAND = """
CREATE TABLE command (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    who TEXT NOT NULL,
    name TEXT NOT NULL,
    argument,
    reason TEXT NOT NULL DEFAULT '',
    purpose TEXT NOT NULL DEFAULT '',
    answered REAL,
    obeyed INTEGER,
    answer TEXT
)
"""
"""The table of :class:`CommandDatabase`."""

READING = "cannot be read"
"""The problem of methods that read, in messages."""

WRITING = "cannot be written"
"""The problem of methods that write, in messages."""

LOCK_TIMEOUT_SECONDS = 10.0
"""How long to wait for other processes that write the file, each for some milliseconds."""

MAX_TIME = 253_000_000_000
"""Later than any time that is stored, in seconds since the Unix epoch: calendars of programs end in the year 9999."""

NOT_DECODED = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
    msgspec.MsgspecError,  # no ValueError before 0.21
)
"""What decoding a row raises if its values are not in the form in which the program writes them."""

Id: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]

Time: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MAX_TIME)]
"""In seconds since the Unix epoch."""

Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=1 << 24)]

Values: TypeAlias = Sequence[Any] | Mapping[str, Any]

T = TypeVar("T")

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_BATCH = 64
"""Rows that are fetched and checked together."""

_BYTES = (bytes,)  # which msgspec expects as text otherwise

_PLACE = re.compile(r" - at `\$\[(\d+)\]`$")
"""Where msgspec says which value of a row is wrong."""


class DatabaseRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of a table. The fields of a subclass are columns, in any order, and their types what these may have."""


R = TypeVar("R", bound=DatabaseRow)


class CommandRow(DatabaseRow, frozen=True):
    """A command to the process that writes a file."""

    id: Id
    """Its row."""
    time: Time
    """When it was sent, in seconds since the Unix epoch."""
    who: Text
    """Who sent it, as ``user@host``."""
    name: Text
    argument: float | Text | None = None
    """A number, or a text such as JSON."""
    reason: Text = ""
    """Why; empty if unknown."""
    purpose: Text = ""


C = TypeVar("C", bound=CommandRow)


class AnswerRow(DatabaseRow, frozen=True):
    """The answer to a command: when, whether it was obeyed, and a text."""

    answered: Time
    obeyed: Annotated[int, msgspec.Meta(ge=0, le=1)]
    answer: Text


class _Id(DatabaseRow, frozen=True):
    id: int


def check_version(title: str, version: object, known: int) -> None:
    """Check that a file has the format that this program reads and writes.

    Args:
        title: The file, in messages.
        version: The version of its format.
        known: The version that this program knows.

    Raises:
        RunError: The file has another version; the message says what to do.
        ValueError: The file has no version.
    """
    if not isinstance(version, int):
        raise ValueError("it has no version of its format")  # noqa: TRY004 (the file is damaged)
    if version > known:
        raise RunError(
            f"{title} was created by a newer accel-tui (format {version}; this version reads up to {known}): upgrade "
            "accel-tui to open it"
        )
    if version < known:
        raise RunError(
            f"{title} was created by an older accel-tui (format {version}; this version reads {known}): open it with "
            "the version that created it"
        )


def create_database(path: Path, tables: str, **meta: object) -> None:
    """Create a file, complete and closed, which only its owner can read.

    Args:
        path: The file, which nobody else has opened.
        tables: Statements that create its tables.
        meta: Rows of ``meta``, but those that are ``None``; one is the ``schema``.

    Raises:
        OSError, sqlite3.Error: The file cannot be written; see :func:`database_errors`.
    """
    path.touch(mode=0o600)
    with closing(connect(path)) as database:
        # WAL comes last: closing a database copies its WAL into the file, and reports no error of that.
        database.execute("PRAGMA journal_mode = MEMORY").fetchone()
        database.executescript(f"BEGIN; {META}; {tables}")
        database.executemany("INSERT INTO meta VALUES (?, ?)", [row for row in meta.items() if row[1] is not None])
        database.execute("COMMIT")
        use_wal(database)


def connect(path: Path, options: str = "mode=rw") -> sqlite3.Connection:
    """Open a file; SQLite's own default mode would create an empty one if it is just being deleted."""
    database = sqlite3.connect(
        f"file:{quote_from_bytes(os.fsencode(path))}?{options}",
        timeout=LOCK_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    # A byte that is no UTF-8 is kept, as in names of files.
    database.text_factory = lambda text: text.decode(errors="surrogateescape")
    return database


def use_wal(database: sqlite3.Connection) -> None:
    """Let readers and one writer not block each other; where the file system refuses that, nothing changes."""
    database.execute("PRAGMA journal_mode = WAL").fetchone()


def copy_database(path: Path, to: Path, title: str) -> None:
    """Copy a file with all that was written to it, which others may write meanwhile.

    Raises:
        RunError: It cannot be read, or the copy cannot be written.
    """
    with database_errors(title, READING), closing(connect(path)) as source, closing(sqlite3.connect(to)) as copy:
        source.backup(copy)
        use_wal(copy)
    to.chmod(0o600)


class VersionedDatabase:
    """An open file; its methods may be called from one thread at a time.

    Args:
        path: The file.
        title: Its name in messages, such as ``run k3fp-mine``.
        version: The version of the format that this program reads and writes.
        synchronous: SQLite's setting: with ``FULL``, what was written is there after a power failure.
        cure: A sentence, without its full stop, that says what to do if it is damaged; empty if nothing helps.
        read_only: Whether nothing is written.

    Raises:
        RunError: The file cannot be opened, or has another version of the format. All methods raise it, too.
    """

    def __init__(
        self,
        path: Path,
        title: str,
        version: int,
        *,
        synchronous: str = "NORMAL",
        cure: str = "",
        read_only: bool = False,
    ) -> None:
        self.path, self._title, self._cure = path, title, cure
        with self._explained():
            self._database = self._connect(read_only=read_only)
        try:
            # Not SQLite's mode=ro, if it can be avoided: a reader of a WAL database creates its shared-memory file.
            self.value(f"PRAGMA query_only = {int(read_only)}")
            self.value(f"PRAGMA synchronous = {synchronous}")
            self._initialize()
            with self._explained():
                check_version(title, self.meta("schema"), version)
        except RunError as error:
            found = self._first_damage() if isinstance(error.__cause__, sqlite3.DatabaseError) else ""
            self.close()
            if found:
                raise self._explain(ValueError(found), READING) from error
            raise
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def set_lock_timeout(self, seconds: float) -> None:
        """Set how long to wait for other processes."""
        self.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    def journal_mode(self) -> str:
        """``wal``, or another mode where the file system refuses it."""
        return str(self.value("PRAGMA journal_mode"))

    def data_version(self) -> int:
        """A number that changes when another connection has written."""
        return int(self.value("PRAGMA data_version"))

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Let no other process change the file during a block, which is undone if it raises."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield self
            self.execute("COMMIT")
        finally:
            if self._database.in_transaction:
                self.execute("ROLLBACK")

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """Read the tables in one transaction."""
        self.value("BEGIN")
        try:
            yield self
        finally:
            self.value("COMMIT")

    def execute(self, statement: str, values: Values = ()) -> sqlite3.Cursor:
        """Execute a statement that changes something."""
        with self._explained(WRITING):
            return self._database.execute(statement, values)

    def execute_many(self, statement: str, values: Iterable[Values]) -> None:
        """Execute a statement with each of some values."""
        with self._explained(WRITING):
            self._database.executemany(statement, values)

    def query(self, statement: str, values: Values = ()) -> Iterator[tuple[Any, ...]]:
        """Read what a statement finds, one after another; nothing of it is checked."""
        with self._explained():
            for row in self._database.execute(statement, values):  # noqa: UP028 (that closes it, after the database)
                yield row

    def value(self, statement: str, values: Values = ()) -> Any:
        """The first value that a statement finds; ``None`` if it finds nothing."""
        return next(self.query(statement, values), (None,))[0]

    def rows(self, table: str, kind: type[R], condition: str = "", values: Values = ()) -> Iterator[R]:
        """Read rows one after another.

        Args:
            table: Their table.
            kind: Their type. Its first field identifies a row in errors.
            condition: What follows the name of the table in SQL.
            values: The values of its parameters.
        """
        with self._explained():
            found = self._database.execute(_select(table, kind, condition), values)
            while batch := found.fetchmany(_BATCH):
                yield from self._converted(table, kind, batch)

    def row(self, table: str, kind: type[R], condition: str = "", values: Values = ()) -> R | None:
        """The first of the rows that :meth:`rows` reads; ``None`` if there is none."""
        with self._explained():
            found = self._database.execute(_select(table, kind, condition), values).fetchone()
        return None if found is None else self.decode(table, found[0], convert_row, found, kind)

    def new_rows(self, table: str, kind: type[R], after: int = 0, limit: int = -1) -> Iterator[R]:
        """Read the rows that were added since one was, oldest first: ids rise and are never used again.

        Args:
            table: The table.
            kind: As :meth:`rows` takes it.
            after: The id of the last row read before; 0 for none.
            limit: Maximum number of rows; -1 for all.
        """
        return self.rows(table, kind, "WHERE id > ? ORDER BY id LIMIT ?", (after, limit))

    def decode(self, table: str, key: object, decode: Callable[..., T], *values: Any) -> T:
        """Decode a row.

        Args:
            table: Its table.
            key: Identifies it.
            decode: Returns what the values mean, or raises one of :data:`NOT_DECODED`.
            values: Its values.
        """
        try:
            return decode(*values)
        except NOT_DECODED as error:
            cause = ValueError(f"row {key!r} of the table {table}: {error}")
            raise self._explain(cause, READING) from error

    def columns(self, table: str) -> list[str]:
        """The columns of a table; empty if there is none."""
        return [row[1] for row in self.query(f"PRAGMA table_info({table})")]

    def last_id(self, table: str) -> int:
        """The last id of a table; 0 if it is empty."""
        found = self.row(table, _Id, "ORDER BY id DESC")
        return found.id if found else 0

    def meta(self, key: str) -> Any:
        """A value that is stored by name; ``None`` if there is none."""
        return self.value("SELECT value FROM meta WHERE key = ?", (key,))

    def set_meta(self, **values: object) -> None:
        """Store values by name; ``None`` removes one."""
        for key, value in values.items():
            if value is None:
                self.execute("DELETE FROM meta WHERE key = ?", (key,))
            else:
                self.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _converted(self, table: str, kind: type[R], rows: list[tuple[Any, ...]]) -> list[R]:
        try:
            return msgspec.convert(rows, list[kind], builtin_types=_BYTES)  # type: ignore[valid-type]
        except msgspec.ValidationError:
            return [self.decode(table, row[0], convert_row, row, kind) for row in rows]

    def _connect(self, *, read_only: bool) -> sqlite3.Connection:
        """Open the file."""
        return connect(self.path)

    def _initialize(self) -> None:
        """Called when the file is open, to create its tables."""

    def _first_damage(self) -> str:
        """Where the file is damaged first; empty if SQLite does not find it."""
        with suppress(sqlite3.Error, UnicodeDecodeError):
            found = str(self._database.execute("PRAGMA quick_check(1)").fetchone()[0])
            return "" if found == "ok" else " ".join(found.split())
        return ""

    @contextmanager
    def _explained(self, problem: str = READING) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, TypeError, ValueError) as error:  # one of the last if a message quotes no UTF-8
            raise self._explain(error, problem) from error

    def _explain(self, error: Exception, problem: str) -> RunError:
        return explain(error, self._title, problem, self.path.name, self._cure)


class CommandDatabase(VersionedDatabase):
    """A file whose writer obeys commands: rows of the table ``command``, which it answers."""

    def add_command(self, name: str, argument: float | str | None = None, reason: str = "", purpose: str = "") -> int:
        """Send a command of this process's user, and return its id.

        Args:
            name: Its name.
            argument: A number, or a text such as JSON.
            reason: Why it is sent; empty if unknown.
            purpose: Its purpose; empty if unknown.
        """
        return self.copy_command(clock.now(), current_user(), name, argument, reason, purpose)

    def copy_command(
        self, time: float, who: str, name: str, argument: float | str | None, reason: str, purpose: str
    ) -> int:
        """Send a command that somebody has sent at some time, perhaps on another machine, and return its id."""
        query = "INSERT INTO command (time, who, name, argument, reason, purpose) VALUES (?, ?, ?, ?, ?, ?)"
        return int(self.execute(query, (time, who, name, argument, reason, purpose)).lastrowid or 0)

    def find_command(self, time: float, who: str) -> int:
        """The id of the command that somebody has sent at some time; 0 if there is none."""
        found = self.row("command", _Id, "WHERE time = ? AND who = ?", (time, who))
        return found.id if found else 0

    def command_time(self, command: int) -> float | None:
        """When a command was sent; ``None`` if there is none of this id."""
        found = self.value("SELECT time FROM command WHERE id = ?", (command,))
        return None if found is None else float(found)

    def unanswered(self, kind: type[C]) -> list[C]:
        """The commands without an answer, oldest first."""
        return list(self.rows("command", kind, "WHERE answered IS NULL ORDER BY id"))

    def answer(self, command: int, answer: str, *, obeyed: bool) -> None:
        """Answer a command."""
        query = "UPDATE command SET answered = ?, obeyed = ?, answer = ? WHERE id = ?"
        self.execute(query, (clock.now(), obeyed, answer, command))

    def answer_to(self, command: int) -> tuple[bool, str] | None:
        """Whether a command was carried out, and the answer; ``None`` without an answer."""
        found = self.row("command", AnswerRow, "WHERE id = ? AND answered IS NOT NULL", (command,))
        return (bool(found.obeyed), found.answer) if found else None

    def withdraw(self, command: int) -> bool:
        """Answer a command for its sender, so that nobody obeys it; returns whether it had no answer."""
        return self._reject("withdrawn", "id = ?", command) > 0

    def reject_commands(self) -> None:
        """Reject the commands that a process has left unanswered at its exit."""
        self._reject("the engine had exited", "TRUE")

    def _reject(self, answer: str, condition: str, *values: int) -> int:
        query = f"UPDATE command SET answered = ?, obeyed = 0, answer = ? WHERE answered IS NULL AND {condition}"
        return self.execute(query, (clock.now(), answer, *values)).rowcount


def current_user() -> str:
    """The user of this process, as ``user@host``."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def convert_row(row: tuple[Any, ...], kind: type[R]) -> R:
    """Check the values of a row, in the order of the fields.

    Raises:
        ValueError: A field cannot have its value.
    """
    try:
        return msgspec.convert(row, kind, builtin_types=_BYTES)
    except msgspec.ValidationError as error:
        names = kind.__struct_fields__
        raise ValueError(_PLACE.sub(lambda found: f" in {names[int(found[1])]}", str(error))) from None


def _select(table: str, kind: type[DatabaseRow], condition: str) -> str:
    return f"SELECT {', '.join(kind.__struct_fields__)} FROM {table} {condition}"


@contextmanager
def database_errors(title: str, problem: str) -> Iterator[None]:
    """Raise errors of SQLite and of the system as errors for users; see :func:`explain`.

    Args:
        title: What is read or written.
        problem: What cannot be done with it.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explain(error, title, problem) from error


def explain(error: Exception, title: str, problem: str, file: str = "", cure: str = "") -> RunError:
    """The error for users of one of SQLite, of the system, or of a value that cannot be decoded.

    Args:
        error: The error.
        title: What is read or written.
        problem: What cannot be done with it.
        file: The name of the file.
        cure: A sentence that says what to do if it is damaged.

    Returns:
        A :exc:`DatabaseError` if SQLite cannot use the file, perhaps only now; otherwise another :exc:`RunError`.
    """
    if _is_damage(error):
        return RunError(
            f"{title} {problem}: {f'its {file}' if file else 'it'} is damaged ({error}){cure and f'. {cure}'}"
        )
    if isinstance(error, OSError):
        return RunError(f"{title} {problem}: {os.strerror(error.errno) if error.errno else error}")
    kind = DatabaseError if isinstance(error, sqlite3.OperationalError) else RunError
    return kind(f"{title} {problem}: {error}")


def _is_damage(error: Exception) -> bool:
    """Whether a file is not a database any more, or not all of one."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code in _DAMAGED or (code == sqlite3.SQLITE_ERROR and str(error).startswith("no such "))
    return not isinstance(error, OSError)
