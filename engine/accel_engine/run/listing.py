"""Finding runs: all of them, or the one that somebody means."""

import json
import os
import sqlite3
import threading
import time
from array import array
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path

from accel_engine.errors import RunError, UsageError
from accel_engine.events import EpochEnded, RunEnded, Validated, from_json
from accel_engine.registry import suggestion
from accel_engine.run.paths import latest_checkpoint, runs_directory
from accel_engine.run.schema import DATABASE, LEARNING_RATE, connect, series_columns
from accel_engine.run.status import RunInfo, Status, read_info
from accel_engine.run.worker_runs import Membership, read_membership
from accel_engine.text import printable_line

_Stamp = tuple[int, int, int, int]  # when a run's database and what is to go into it were written, and their sizes

_SETTLED = 2_000_000_000  # nanoseconds, the coarsest that a file system tells the time of a file in


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a line.

    Attributes:
        id: Its id.
        directory: Where it is.
        info: What it is; ``None`` when it cannot be read.
        steps: Steps recorded.
        metrics: The latest known means: the last epoch's, those of the last chunk before one has ended; validation's
            are prefixed with ``validation_``.
        seconds: How long engines worked on it; the time between two of them does not count, nor what came after the
            last event of one that ended without a word.
        membership: Whose part of a run of many workers it is; ``None`` for a whole run.
        reason: Why it ended, where it did not just finish.
        checkpoint: The step of its last checkpoint; 0 when it has none.
        problem: Why it cannot be read.
    """

    id: str
    directory: Path
    info: RunInfo | None
    steps: int = 0
    metrics: dict[str, float] | None = None
    seconds: float = 0.0
    membership: Membership | None = None
    reason: str = ""
    checkpoint: int = 0
    problem: str = ""

    @property
    def status(self) -> Status | None:
        """Its status, or ``None`` when it cannot be read."""
        return self.info.status if self.info else None


class RunList:
    """The runs of this user on this machine; a look reads only those again that have changed. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[_Stamp | None, RunSummary]] = {}
        self._sorted: tuple[RunSummary, ...] = ()

    @property
    def runs(self) -> tuple[RunSummary, ...]:
        """Those found by the last look, newest first; one that cannot be read says why."""
        return self._sorted

    def look(self, most: int | None = None) -> bool:
        """Look for runs.

        A live run is read at every look, as its engine may have died without a word.

        Args:
            most: How many runs to read at most, those first whose files are newest; all when left out.

        Returns:
            Whether no run that has changed was left unread.
        """
        with self._lock:
            now = time.time_ns()
            stamps = _stamps(runs_directory())
            self._known = {place: known for place, known in self._known.items() if place in stamps}
            changed = [place for place, stamp in stamps.items() if not self._is_known(place, stamp)]
            changed.sort(key=lambda place: stamps[place], reverse=True)
            for place in changed[:most]:
                stamp = stamps[place]
                # What was written a moment ago may be written again without any sign of it on the file.
                settled = now - max(stamp[0], stamp[2]) > _SETTLED
                self._known[place] = (stamp if settled else None, summarize(place))
            if changed or len(self._known) != len(self._sorted):
                summaries = (summary for _, summary in self._known.values())
                self._sorted = tuple(sorted(summaries, key=_created, reverse=True))
            return most is None or len(changed) <= most

    def _is_known(self, place: Path, stamp: "_Stamp") -> bool:
        known = self._known.get(place)
        return known is not None and known[0] == stamp and not (known[1].status and known[1].status.live)


def list_runs() -> list[RunSummary]:
    """All runs of this user on this machine, newest first; one that cannot be read says why."""
    runs = RunList()
    runs.look()
    return list(runs.runs)


def find(reference: str) -> Path:
    """Find the run that is meant.

    Args:
        reference: A run's id, its name, also as it is shown (of several the newest), the unique beginning of an id,
            ``last`` for the newest, or a run's directory.

    Raises:
        UsageError: There is none, or more than one.
    """
    if not reference.strip():
        raise UsageError("name a run: its id, the beginning of one, its name, or last")
    path = Path(reference)
    if (path / DATABASE).is_file():
        return path.resolve()
    if (runs_directory() / reference / DATABASE).is_file():
        return runs_directory() / reference  # without a look at all others
    runs = list_runs()
    if not runs:
        raise UsageError(f"there are no runs yet in {runs_directory()}")
    if reference == "last":
        ids = {run.id for run in runs}  # a part of a run that is here too is not what anybody means
        return next(run for run in runs if run.membership is None or run.membership.run not in ids).directory
    named = [run for run in runs if run.info and reference in (run.info.name, printable_line(run.info.name))]
    prefixed = [run for run in runs if run.id.startswith(reference)]
    for matches in (named[:1], prefixed):
        if len(matches) == 1:
            return matches[0].directory
    if prefixed:
        raise UsageError(f"{reference!r} could be any of {', '.join(run.id for run in prefixed[:6])}")
    raise UsageError(f"no run is called {reference!r}; {suggestion(reference, [run.id for run in runs])}")


def summarize(directory: Path) -> RunSummary:
    """Read one run in a line."""
    try:
        connection = connect(directory, read_only=True)
    except RunError as error:
        return RunSummary(directory.name, directory, None, problem=str(error))
    try:
        info = read_info(connection, directory)
        steps = connection.execute("SELECT first_step + count FROM chunk ORDER BY id DESC LIMIT 1").fetchone()
        metrics, reason = _last_words(connection)
        if "loss" not in metrics:
            metrics = _last_means(connection) | metrics
        return RunSummary(
            directory.name,
            directory,
            info,
            steps=steps[0] if steps else 0,
            metrics=metrics,
            seconds=_worked(connection),
            membership=read_membership(connection),
            reason=reason if info.status in (Status.STOPPED, Status.FAILED) else "",
            checkpoint=latest_checkpoint(directory),
        )
    except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
        return RunSummary(directory.name, directory, None, problem=f"damaged: {error}")
    finally:
        connection.close()


def _worked(connection: sqlite3.Connection) -> float:
    """How long all engines worked on a run: as each has measured it, else until its last event."""
    starts = connection.execute("SELECT id, time FROM event WHERE kind = 'run_started' ORDER BY id").fetchall()
    seconds = 0.0
    for (first, begun), (end, _) in pairwise([*starts, (1 << 62, 0.0)]):
        last, measured = connection.execute(
            "SELECT max(time), (SELECT body FROM event WHERE kind = 'run_ended' AND id > ? AND id < ?) "
            "FROM event WHERE id >= ? AND id < ?",
            (first, end, first, end),
        ).fetchone()
        # The clock may have been set while it ran.
        seconds += float(json.loads(measured)["seconds"]) if measured else max(0.0, last - begun)
    return seconds


def _last_words(connection: sqlite3.Connection) -> tuple[dict[str, float], str]:
    """The latest means, and why the last engine ended."""
    metrics: dict[str, float] = {}
    reason = ""
    rows = connection.execute(
        "SELECT kind, time, body FROM event WHERE id IN (SELECT max(id) FROM event "
        "WHERE kind IN ('epoch_ended', 'validated', 'run_ended') GROUP BY kind) ORDER BY id"
    )
    for kind, at, body in rows:
        event = from_json(kind, at, body)
        match event:
            case Validated(metrics=means):
                metrics |= {f"validation_{name}": value for name, value in means.items()}
            case EpochEnded(metrics=means) | RunEnded(metrics=means):
                metrics |= means
        reason = event.reason if isinstance(event, RunEnded) else reason
    return metrics, reason


def _last_means(connection: sqlite3.Connection) -> dict[str, float]:
    """The means of the last chunk; nothing of a series without a finite value."""
    names = [name for name in series_columns(connection) if name != LEARNING_RATE]
    columns = ", ".join(f'"{name}"' for name in names)
    row = connection.execute(f"SELECT {columns} FROM chunk ORDER BY id DESC LIMIT 1").fetchone() if names else None
    means: dict[str, float] = {}
    for name, packed in zip(names, row or (), strict=False):
        values = [value for value in array("f", packed or b"") if isfinite(value)]
        if values:
            means[name] = sum(values) / len(values)
    return means


def _created(run: RunSummary) -> float:
    try:
        return run.info.created if run.info else (run.directory / DATABASE).stat().st_mtime
    except OSError:
        return 0.0


def _stamps(parent: Path) -> dict[Path, _Stamp]:
    """What tells whether a run has changed, of each."""
    stamps: dict[Path, _Stamp] = {}
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with suppress(OSError):
                file = os.stat(f"{entry.path}/{DATABASE}")
                written, size = _written(f"{entry.path}/{DATABASE}-wal")
                stamps[parent / entry.name] = (file.st_mtime_ns, file.st_size, written, size)
    return stamps


def _written(path: str) -> tuple[int, int]:
    """When a file was written and its size; nothing of one that is empty, as readers make and delete it too."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return (found.st_mtime_ns, found.st_size) if found.st_size else (0, 0)
