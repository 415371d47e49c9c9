"""Lists runs, and finds a run by its id, name or prefix."""

import json
import os
import threading
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path

from accel_engine.errors import RunError, UsageError
from accel_engine.events import EpochEnded, ModelBuilt, PartStarted, RunEnded, RunStarted, Validated, WorkersMet
from accel_engine.json_values import convert
from accel_engine.run.directory.run_paths import (
    host_function,
    host_of_run,
    hosts_directory,
    latest_checkpoint,
    run_name,
    runs_directory,
)
from accel_engine.run.engine.status import RunInfo, Status, read_info
from accel_engine.run.history.history import History, best_point, stored_history
from accel_engine.run.runs.devices_in_use import devices_found
from accel_engine.run.runs.worker_runs import Membership, membership_of
from accel_engine.run.store.database import DATABASE, RunDatabase, reading
from accel_engine.run.store.meta import HOST_SUMMARY
from accel_engine.run.store.series_names import LEARNING_RATE, VALIDATION_PREFIX, choose_monitor
from accel_engine.run.store.stored_events import decoded_events
from accel_engine.text import printable_line, suggestion
from accel_engine.user_paths import is_directory, is_file

_Stamp = tuple[int, int, int, int]  # modification times and sizes of a run's database and its write-ahead log

_KINDS = (RunStarted, WorkersMet, PartStarted, ModelBuilt, EpochEnded, Validated, RunEnded)
"""The events that a summary follows from."""

_BUCKETS = 64
"""About how many buckets of steps a series is read in to find its best value."""

_LAST_CHUNKS = 1000
"""In how many of the last chunks a series' last value is looked for."""

_AFTER_ALL = (1 << 63) - 1
"""No id is larger."""

_SETTLED = 2_000_000_000  # nanoseconds; the coarsest resolution of file times on common file systems


CURVE_POINTS = 24
"""Most values of a run's curve in a list."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run, summarized for a list."""

    id: str
    """Its id; of a run that is mirrored from a host, ``HOST:ID``."""
    directory: Path
    """Its directory."""
    info: RunInfo | None
    """Its ``meta`` and status; ``None`` if it cannot be read."""
    steps: int = 0
    """Steps recorded."""
    metrics: dict[str, float] | None = None
    """The latest values: the means of the last epoch (see ``of_epoch``), and of the last validation, which are
    prefixed with ``validation_``."""
    of_epoch: bool = False
    """Whether an epoch has ended; one of its latest part, if that is no ``fit`` of a script. If not, ``metrics`` has
    the last value of each series in place of means."""
    monitor: str = ""
    """The metric that counts, such as ``validation_accuracy``."""
    best: float | None = None
    """Its best value over all validations or epochs, or over all steps if the run has no epochs; ``None`` if there is
    none yet, or if its name does not tell which way is better."""
    curve: tuple[float, ...] = ()
    """Its values over all validations or epochs, at most :data:`CURVE_POINTS`, evenly spaced with the last one."""
    baseline: Mapping[str, float] = field(default_factory=dict)
    """What a prediction that has learned nothing reaches on the validation examples, by the names of metrics without a
    prefix; empty if unknown."""
    baseline_name: str = ""
    """What that predicts, such as ``most frequent class: cat``; empty if unknown."""
    seconds: float = 0.0
    """Total run time of its engines; of an engine that exited unexpectedly, until its last event."""
    membership: Membership | None = None
    """The worker that wrote it, for a worker's run; ``None`` for a whole run."""
    reason: str = ""
    """Why it stopped or failed."""
    checkpoint: int = 0
    """The step of its last checkpoint; 0 if there is none."""
    epochs: float = 0.0
    """Epochs trained at that checkpoint, as a fraction."""
    total_steps: int = 0
    """Steps of all its epochs; 0 if unknown."""
    devices: tuple[str, ...] = ()
    """The devices on which its live engine trains, such as ``gpu:0``; empty if unknown, and for an ended run."""
    problem: str = ""
    """Why it cannot be read."""

    @property
    def status(self) -> Status | None:
        """Its status, or ``None`` if it cannot be read."""
        return self.info.status if self.info else None


class RunList:
    """The runs of this user; a refresh reads only those that have changed. Thread-safe.

    Args:
        parent: The directory of these runs; by default, the runs of this machine and the mirrored ones of all hosts.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[_Stamp | None, RunSummary]] = {}
        self._sorted: tuple[RunSummary, ...] = ()

    @property
    def runs(self) -> tuple[RunSummary, ...]:
        """The runs found by the last refresh, newest first; one that cannot be read has a ``problem``."""
        return self._sorted

    @property
    def ended(self) -> dict[Path, RunSummary]:
        """The ended runs by their directories: they need not be read again."""
        return {run.directory: run for run in self._sorted if run.status and not run.status.live}

    def refresh(self, limit: int | None = None) -> bool:
        """Find runs, and read those that are new or have changed.

        Live runs are always read, as their engines may have exited unexpectedly.

        Args:
            limit: Maximum number of runs to read, most recently written first; all by default.

        Returns:
            Whether all changed runs were read.
        """
        with self._lock:
            now = time.time_ns()
            stamps = {path: stamp for parent in self._parents() for path, stamp in _stamps(parent).items()}
            self._known = {path: known for path, known in self._known.items() if path in stamps}
            changed = [path for path, stamp in stamps.items() if not self._is_known(path, stamp)]
            changed.sort(key=lambda path: stamps[path], reverse=True)
            for path in changed[:limit]:
                stamp = stamps[path]
                # A file written a moment ago may be written again with the same modification time and size.
                settled = now - max(stamp[0], stamp[2]) > _SETTLED
                self._known[path] = (stamp if settled else None, summarize(path))
            if changed or len(self._known) != len(self._sorted):
                summaries = (summary for _, summary in self._known.values())
                self._sorted = tuple(sorted(summaries, key=_created, reverse=True))
            return limit is None or len(changed) <= limit

    def _parents(self) -> list[Path]:
        return [self._parent] if self._parent else _run_parents()

    def _is_known(self, path: Path, stamp: "_Stamp") -> bool:
        known = self._known.get(path)
        return known is not None and known[0] == stamp and not (known[1].status and known[1].status.live)


def _run_parents() -> list[Path]:
    """The directories with runs: the ones of this machine, and the mirrored ones of each host."""
    with suppress(OSError):
        return [runs_directory(), *(Path(entry.path, "runs") for entry in os.scandir(hosts_directory()))]
    return [runs_directory()]


def list_runs() -> list[RunSummary]:
    """List the runs of this user and the mirrored ones, newest first; one that cannot be read has a ``problem``."""
    runs = RunList()
    runs.refresh()
    return list(runs.runs)


def find_run(reference: str) -> Path:
    """Find a run's directory.

    Args:
        reference: A run's id, a unique prefix of an id, a run's name (the newest of several), ``last`` for the newest
            run that can be read and is not a bench, or a run's directory. After ``HOST:``, one of the runs of a host;
            else a run that is here, too, is the one here.

    Raises:
        UsageError: No run matches, or a prefix is ambiguous; or there are only benches for ``last``.
        RunError: The host of ``HOST:`` cannot be reached.
    """
    if not reference.strip():
        raise UsageError("name a run: its id, a prefix of its id, its name, or last")
    path = Path(reference)
    if is_file(path / DATABASE):
        return path.resolve()
    if is_file(runs_directory() / reference / DATABASE):
        return runs_directory() / reference  # without reading all others
    host, colon, on_host = reference.partition(":")
    if colon and host and "/" not in host and is_directory(hosts_directory() / host):
        host_function("mirrored_runs:list_runs_of")(host)
        within = [run for run in list_runs() if host_of_run(run.directory) == host]
        return _found(on_host, within, f"on {host}")
    runs = [run for run in list_runs() if reference != "last" or not host_of_run(run.directory)]
    if colon and host and "/" not in reference and not runs_named(runs, reference):
        host_function("host_list:find_host")(host)  # raises, as there is no such host
    if not runs and "/" in reference:
        raise UsageError(f"no run in {path}")
    if not runs:
        raise UsageError(f"no runs yet in {runs_directory()}")
    return _found(reference, runs)


def _found(reference: str, runs: Sequence[RunSummary], where: str = "") -> Path:
    """The directory of one of some runs."""
    if not runs:
        raise UsageError(f"no runs yet {where}")
    if reference == "last":
        ids = {run.id for run in runs}  # not a worker's run if its chief's run is here, too
        whole = [run for run in runs if run.membership is None or run.membership.run not in ids]
        # A bench is named by its id: its model is in the run that it measured.
        others = [run for run in whole if not (run.info and run.info.bench)]
        if not others:
            raise UsageError(f"last is never a bench, and all runs are: name one by its id, such as {whole[0].id}")
        return min(others, key=lambda run: bool(run.problem)).directory  # the first that can be read, as in lists
    here = {run.directory.name for run in runs if not host_of_run(run.directory)}
    # One that was fetched is the one here; the other has its host before its name.
    runs = [run for run in runs if not (host_of_run(run.directory) and run.directory.name in here)]
    prefixed = [run for run in runs if run.directory.name.startswith(reference)]
    for matches in (runs_named(runs, reference)[:1], prefixed):
        if len(matches) == 1:
            return matches[0].directory
    if prefixed:
        raise UsageError(f"{reference!r} is ambiguous: {', '.join(run.id for run in prefixed[:6])}")
    known = suggestion(reference, [run.directory.name for run in runs])
    raise UsageError(f"no run {reference!r}{where and ' '}{where}; {known}")


def runs_named(runs: Iterable[RunSummary], name: str) -> list[RunSummary]:
    """The runs with a name, or with a name that is printed so."""
    return [run for run in runs if run.info and name in (run.info.name, printable_line(run.info.name))]


def summarize(directory: Path) -> RunSummary:
    """Read one run; if it cannot be read, the summary has a ``problem``."""
    try:
        with reading(directory) as database:
            if summary := database.meta(HOST_SUMMARY):
                return _of_host(directory, read_info(database), summary)
            info, checkpoint = read_info(database), latest_checkpoint(directory)
            history = stored_history(database, *_KINDS)
            ended, validated = history.ended, history.validated
            steps = database.chunk_from_end()[1]
            first = history.loop_start(steps)
            of_epoch = any(each.step > first for each in history.ended_epochs)
            metrics = history.metrics | (ended.metrics if ended else {})
            if not (of_epoch or info.bench):
                last = _last_values(database, first)
                metrics = metrics | last if first else last | metrics  # those before are of another part
            monitor = _monitor(history, info, metrics)
            return RunSummary(
                directory.name,
                directory,
                info,
                steps=steps,
                metrics=metrics,
                of_epoch=of_epoch,
                monitor=monitor,
                best=_best(database, info, history, monitor, metrics, first),
                curve=thinned([value for _, value in history.points(monitor)], CURVE_POINTS),
                baseline=validated.baseline if validated else {},
                baseline_name=validated.baseline_name if validated else "",
                seconds=_seconds(database),
                membership=membership_of(history),
                reason=ended.reason if ended and info.status in (Status.STOPPED, Status.FAILED) else "",
                checkpoint=checkpoint,
                epochs=history.trained_epochs(checkpoint),
                total_steps=history.built.epochs * (history.built.steps_per_epoch or 0) if history.built else 0,
                devices=(devices_found(database) or ()) if info.status.live else (),
            )
    except RunError as error:
        return RunSummary(run_name(directory), directory, None, problem=str(error))


def _of_host(directory: Path, info: RunInfo, text: str) -> RunSummary:
    """The summary of a mirrored run, which its host has made of all of the run."""
    summary = RunSummary(run_name(directory), directory, info)
    with suppress(ValueError):
        summary = convert(json.loads(text), RunSummary, lambda _, value: Path(value))
    return replace(summary, id=run_name(directory), directory=directory, info=info)


def _seconds(database: RunDatabase) -> float:
    """The run time of all engines: as each has measured it, else until its last event."""
    total = 0.0
    starts = list(database.events(kinds=[RunStarted.kind()]))
    ends = list(decoded_events(database, database.events(kinds=[RunEnded.kind()])))
    for start, stop in zip(starts, [*(each.id for each in starts[1:]), _AFTER_ALL], strict=False):
        ended = next((event for number, event in ends if start.id < number < stop), None)
        if isinstance(ended, RunEnded) and isfinite(ended.seconds):
            total += ended.seconds
        elif last := database.last_event_before(stop):
            total += max(0.0, last.time - start.time)  # not negative, also if the clock was set back in the meantime
    return total


def start_seconds(directory: Path) -> float:
    """How long the engines of a run took until their first step, in seconds; 0 if it cannot be read."""
    total = 0.0
    with suppress(RunError), reading(directory) as database:
        for start in database.events(kinds=[RunStarted.kind()]):
            first = database.first_chunk_after(start.time)
            total += max(0.0, first - start.time) if first is not None else 0.0
    return total


def _monitor(history: History, info: RunInfo, metrics: Mapping[str, float]) -> str:
    """The metric that counts."""
    wanted, task = (history.built.monitor, history.built.task) if history.built else ("", "")
    validated = [name.removeprefix(VALIDATION_PREFIX) for name in metrics if name.startswith(VALIDATION_PREFIX)]
    trained = [name for name in metrics if not name.startswith(VALIDATION_PREFIX)]
    return choose_monitor(wanted or info.monitor, trained, validated, task)


def _best(
    database: RunDatabase, info: RunInfo, history: History, monitor: str, metrics: Mapping[str, float], first: int
) -> float | None:
    """The best value of a metric over all epochs from a step on; without epochs, as in a script's loop, over all steps.

    A metric that has no value from there on has its best value before.
    """
    own = points = tuple(each for each in history.points(monitor) if each[0] > first)
    if not points and not info.bench and not monitor.startswith(VALIDATION_PREFIX):
        if history.built and history.built.epochs:
            return None  # no epoch has ended
        points = tuple((0, value) for value in _extremes(database, monitor, first))
    points = points or history.points(monitor)
    if not own and monitor in metrics:
        points += ((0, metrics[monitor]),)
    best = best_point(points, monitor, info.plan_values)
    return best[1] if best else None


def thinned(values: Sequence[float], most: int) -> tuple[float, ...]:
    """At most ``most`` values, evenly spaced, with the last one."""
    count = min(len(values), most)
    return tuple(values[(index + 1) * len(values) // count - 1] for index in range(count))


def _extremes(database: RunDatabase, name: str, first: int) -> tuple[float, ...]:
    """The lowest and the highest finite value of each of a series' buckets from a step on; empty without one."""
    from accel_engine.run.store.downsampled_steps import read_range  # which imports NumPy

    stop = database.chunk_from_end()[1]
    width = 1 << max(0, (stop - first).bit_length() - _BUCKETS.bit_length())
    whole = -(-first // width) * width
    values: list[float] = []
    for begin, end, wide in ((first, whole, 1), (whole, stop, width)) if name in database.series() else ():
        buckets = read_range(database, begin, end, wide, [name]).series.get(name)
        values += [] if buckets is None else [*map(float, buckets["low"]), *map(float, buckets["high"])]
    return tuple(values)


def _last_values(database: RunDatabase, first: int) -> dict[str, float]:
    """The last finite value of each series but the learning rate, from a step on."""
    values: dict[str, float] = {}
    for name in database.series():
        for packed in () if name == LEARNING_RATE else database.latest_values(name, _LAST_CHUNKS, first):
            if finite := [value for value in array("f", packed) if isfinite(value)]:
                values[name] = finite[-1]
                break
    return values


def _created(run: RunSummary) -> float:
    try:
        return run.info.created if run.info else (run.directory / DATABASE).stat().st_mtime
    except OSError:
        return 0.0


def _stamps(parent: Path) -> dict[Path, _Stamp]:
    """File times and sizes of each run, which change when the run is written."""
    stamps: dict[Path, _Stamp] = {}
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with suppress(OSError):
                file = os.stat(f"{entry.path}/{DATABASE}")
                written, size = _time_and_size(f"{entry.path}/{DATABASE}-wal")
                stamps[parent / entry.name] = (file.st_mtime_ns, file.st_size, written, size)
    return stamps


def _time_and_size(path: str) -> tuple[int, int]:
    """A file's modification time and size; zeros for an empty file, as readers create and delete those, too."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return (status.st_mtime_ns, status.st_size) if status.st_size else (0, 0)
