"""A connection to ``run.db`` whose queries find only whole rows, and which counts the others."""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from accel_engine.run.store import whole_rows
from accel_engine.run.store.schema import KEYS, is_series

Row = tuple[Any, ...]

T = TypeVar("T")

NOT_WHOLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What decoding a row raises if its values are not in the form in which engines write them."""

_FROM = re.compile(rf"\bFROM ({'|'.join(whole_rows.TABLES)})\b")

_OVERLAPPING = """
SELECT id FROM (
    SELECT id, first_step + count AS stop, lead(first_step) OVER (ORDER BY id) AS next FROM chunk WHERE id >= ?
) WHERE stop > next
"""


class TableConnection(sqlite3.Connection):
    """A connection to a run's database; :func:`accel_engine.run.store.connection.connect` opens it.

    Methods raise :exc:`sqlite3.Error`, which :mod:`accel_engine.run.store.connection` translates.
    """

    directory: Path
    """The run's directory."""

    file: tuple[int, int] = (0, 0)
    """Device and inode of its file."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # A byte that is no UTF-8 is kept, as in names of files.
        self.text_factory = lambda text: text.decode(errors="surrogateescape")
        self._version: int | None = None
        self._schema: int | None = None
        self._series: tuple[str, ...] = ()
        self._queries: dict[str, str] = {}
        self._damaged: defaultdict[str, set[Any]] = defaultdict(set)
        self._searched: dict[str, int] = {}
        self._is_outdated: Callable[[], bool] = lambda: False
        self._on_close: Callable[[], object] = lambda: None

    def watch(self, is_outdated: Callable[[], bool], on_close: Callable[[], object] = lambda: None) -> None:
        """Set how a connection that sees no changes of the file learns of them, and what to do once it is closed."""
        self._is_outdated, self._on_close = is_outdated, on_close

    def is_outdated(self) -> bool:
        """Whether the file has changed, and this connection cannot see it."""
        return self._is_outdated()

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self._on_close()

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Execute a statement, as :meth:`sqlite3.Connection.execute` does."""
        try:
            return super().execute(*arguments)
        except UnicodeDecodeError as undecodable:  # SQLite's message quotes a damaged schema
            error = sqlite3.DatabaseError("malformed database schema")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error from undecodable

    def configure(self, *, read_only: bool = False) -> None:
        """Set the options of a new connection."""
        # Not SQLite's mode=ro, if it can be avoided: a reader of a WAL database creates its shared-memory file.
        self.execute(f"PRAGMA query_only = {int(read_only)}")
        self.execute("PRAGMA synchronous = NORMAL")

    def set_lock_timeout(self, seconds: float) -> None:
        """Set how long a statement waits for other connections."""
        self.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    def journal_mode(self) -> str:
        """``wal``, or another mode where the file system refuses it."""
        return str(self.execute("PRAGMA journal_mode").fetchone()[0])

    def show_changes(self) -> int:
        """Learn of series that another connection has added; returns :meth:`data_version`."""
        version = self.data_version()
        if version != self._version:
            schema = int(self.execute("PRAGMA main.schema_version").fetchone()[0])
            if schema != self._schema:
                self._series = tuple(filter(is_series, self.columns("chunk")))
                self._queries.clear()
            self._version, self._schema = version, schema
        return version

    def forget_schema(self) -> None:
        """Read the series again before the next query, as this connection has changed them."""
        self._version = None

    def query(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> sqlite3.Cursor:
        """Execute a query that finds only the whole rows of tables; see :mod:`.whole_rows`."""
        if self._version is None:
            self.show_changes()
        if query not in self._queries:
            self._queries[query] = _FROM.sub(lambda found: f"FROM {whole_rows.source(found[1], self._series)}", query)
        return self.execute(self._queries[query], values)

    def decoded(self, table: str, rows: Iterable[Row], decode: Callable[..., T]) -> Iterator[tuple[Any, T]]:
        """Decode rows; those that are not whole are left out, and counted by :meth:`count_damaged`.

        Args:
            table: Their table.
            rows: Its key, and the values to decode.
            decode: Returns what the values mean, or raises one of :data:`NOT_WHOLE`.
        """
        for key, *values in rows:
            try:
                decoded = decode(*values)
            except NOT_WHOLE:
                self._damaged[table].add(key)
                continue
            yield key, decoded

    def find_damaged(self, *tables: str) -> None:
        """Count the rows that no query finds, of all tables; when called again, those of new rows.

        Args:
            tables: Only these tables.
        """
        for table in tables or KEYS:
            key = KEYS[table]
            condition = f"({whole_rows.condition(table, self.series())}) IS NOT TRUE"
            after = last = self._searched.get(table, -(1 << 63))
            if key == "id":
                condition += f" AND id > {after}"
                last = self.last_id(table)
            found = self.execute(f"SELECT {key} FROM main.{table} WHERE {condition}")
            self._damaged[table].update(key for (key,) in found)
            if table == "chunk":
                self._damaged[table].update(key for (key,) in self.query(_OVERLAPPING, (after,)))
            self._searched[table] = last

    def columns(self, table: str) -> list[str]:
        """The columns of a table."""
        return [row[1] for row in self.execute(f"PRAGMA main.table_info({table})")]

    def add_row(self, table: str, columns: Collection[str], values: Row) -> None:
        """Add a row, unless a constraint of the table forbids it."""
        statement = f"INSERT OR IGNORE INTO main.{table} ({listed(columns)[2:]}) VALUES ({marks(columns)})"
        self.execute(statement, values)

    def delete_rows(self, table: str, keys: Iterable[object]) -> None:
        """Delete rows by their keys."""
        self.executemany(f"DELETE FROM main.{table} WHERE {KEYS[table]} = ?", ((key,) for key in keys))

    def delete_damaged(self, table: str) -> None:
        """Delete the rows that no query finds, and those that could not be decoded."""
        self.find_damaged(table)
        self.delete_rows(table, self._damaged.pop(table, ()))

    def count(self, table: str) -> int:
        """Number of whole rows of a table."""
        return int(self.query(f"SELECT count(*) FROM {table}").fetchone()[0])

    def is_sound(self) -> bool:
        """Whether SQLite finds no damaged page, row or index in the file."""
        return bool(self.execute("PRAGMA main.integrity_check(1)").fetchone() == ("ok",))

    def count_damaged(self) -> int:
        """Number of the damaged rows that were found so far."""
        return sum(map(len, self._damaged.values()))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all statements of a block together, or roll all of them back on an exception."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        finally:
            if self.in_transaction:
                self.execute("ROLLBACK")
                self._version = self._schema = None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the tables in one transaction."""
        self.execute("BEGIN")
        try:
            yield
        finally:
            self.execute("COMMIT")

    def data_version(self) -> int:
        """A number that changes when another connection has written."""
        return int(self.execute("PRAGMA data_version").fetchone()[0])

    def series(self) -> tuple[str, ...]:
        """Names of the per-step series."""
        self.show_changes()
        return self._series

    def last_id(self, table: str) -> int:
        """The last id of a table; 0 if it is empty."""
        return int(self.execute(f"SELECT coalesce(max(id), 0) FROM main.{table}").fetchone()[0])


def is_missing(error: Exception) -> bool:
    """Whether SQLite says that a table or a column does not exist."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code == sqlite3.SQLITE_ERROR and str(error).startswith("no such ")


def marks(values: Collection[object]) -> str:
    """A placeholder for each value."""
    return ", ".join("?" * len(values))


def listed(columns: Iterable[str]) -> str:
    """Names of columns, each after a comma."""
    return "".join(f', "{name}"' for name in columns)
