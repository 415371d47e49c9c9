"""Writes what another tool recorded as an ended run."""

import json
import math
import re
import shutil
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from accel_engine.errors import RunError
from accel_engine.events import EpochEnded, Outcome, RunEnded, RunStarted, Validated, Warned
from accel_engine.imported_runs.logged_epochs import take_epochs
from accel_engine.imported_runs.source_run import Floats, ImportedMetric, SourceRun, Steps
from accel_engine.run.directory.lock import WriterLock, is_locked
from accel_engine.run.directory.run_paths import runs_directory
from accel_engine.run.runs.creation import create_imported
from accel_engine.run.store.annotations import NAME_LENGTH, NOTE_LENGTH, Annotations, validate_tags, write_annotations
from accel_engine.run.store.meta import ImportSource
from accel_engine.run.store.series_names import VALIDATION_PREFIX, SeriesNames, series_name
from accel_engine.run.store.steps import rate_of
from accel_engine.run.writing.writer import RunWriter
from accel_engine.text import printable_line
from accel_engine.words import numbers

MAX_SERIES = 1000
"""Maximum series of a run: each is a column, of which SQLite allows 2000."""

MAX_STEP = 1 << 25
"""The highest step of a run; a dashboard pads the gaps between steps."""

_MAX_GAP, _SPARSE = 1_000_000, 100
"""Steps are numbered if there is a gap of more than this many, and the highest is more than this many times their
number: a run takes disk space and time for the steps in gaps, too."""

_CHUNKS = 1 << 12  # about how many chunks consecutive steps are grouped to
_BLOCK = 1 << 16  # steps that are written from one dense array

_NAMES = ".import-*"  # of the directories in which create_imported and create_bench write

_ABANDONED_SECONDS = 3600.0  # an import creates its directory before it locks it


def write_imported(run: SourceRun, source: ImportSource, written: float) -> str:
    """Write a run.

    Args:
        run: The run; its notes and series may change.
        source: Where it comes from.
        written: When its files were last written, in seconds since the Unix epoch: its time if it has no times.

    Returns:
        Its id.

    Raises:
        RunError: The run cannot be written.
        UsageError: A tag is invalid.
    """
    remove_abandoned()
    take_epochs(run)
    _limit(run)
    steps, times = _steps_and_times(run, written)
    names = _names(run)
    title = _line(run.name, NAME_LENGTH) or source.format
    values: dict[str, Any] = {"name": title}
    if run.config:  # its names may be those of plan fields, but mean what the other tool takes them for
        values |= {"config": {name: _setting(value) for name, value in run.config.items()}}
    events = list(_events(run, names, steps, times))
    first = [run.began] if math.isfinite(run.began) else []
    began = min([*times[:1], *(event.time for event in events), *first], default=written)
    logged = [time for media in run.media if math.isfinite(time := float(media.points.times[-1]))]
    ended = max([*times[-1:], *(event.time for event in events), *logged], default=began)
    with create_imported(values, source, began, run.host) as directory, WriterLock(directory.parent):
        with closing(RunWriter(directory)) as writer:
            writer.write_event(
                RunStarted(
                    time=began,
                    run=directory.name,
                    name=title,
                    plan=values,
                    first_step=0,
                    pid=0,
                    host=run.host,
                    versions={},
                )
            )
            write_media(writer, run, began)
            for note in run.notes:
                writer.write_event(Warned(time=began, message=note, severity="information"))
            for chunk in _chunks(run.series, names, steps, times, began):
                writer.write_chunk(*chunk)
            for event in sorted(events, key=lambda event: (event.time, event.step)):
                writer.write_event(event)
            writer.write_event(_end(run, names, steps, times, ended, ended - began))
        annotations = Annotations(note=_line(run.note, NOTE_LENGTH), tags=validate_tags(run.tags))
        write_annotations(directory, lambda _: annotations)
    return directory.name


def _limit(run: SourceRun) -> None:
    """Leave out series beyond the maximum, and number the records if the steps are too high."""
    if rest := list(run.series)[MAX_SERIES:]:
        run.notes.append(f"only {MAX_SERIES:,} series are imported; left out: {numbers.listed(rest)}")
        run.series = {name: run.series[name] for name in list(run.series)[:MAX_SERIES]}
    found = _union(points.steps for points in (*run.series.values(), *(media.points for media in run.media)))
    if _is_too_sparse(found):
        run.notes.append(f"the steps reach {found[-1]:,}: the steps with values are numbered from 0 instead")
        run.series = {name: points.at(np.searchsorted(found, points.steps)) for name, points in run.series.items()}
        run.validations = {
            name: points.at(np.searchsorted(found, points.steps)) for name, points in run.validations.items()
        }
        run.media = [
            replace(media, points=media.points.at(np.searchsorted(found, media.points.steps))) for media in run.media
        ]
        run.epochs = [replace(epoch, step=int(np.searchsorted(found, epoch.step))) for epoch in run.epochs]


def _is_too_sparse(steps: Steps) -> bool:
    """Whether rising steps are too high, or too far apart, to keep their numbers."""
    if not len(steps):
        return False
    gap = np.diff(steps, prepend=0).max()
    return bool(steps[-1] >= MAX_STEP or (gap > _MAX_GAP and steps[-1] > _SPARSE * len(steps)))


def _union(steps: Iterable[Steps]) -> Steps:
    return np.unique(np.concatenate([np.empty(0, np.int64), *steps]))


def _steps_and_times(run: SourceRun, written: float) -> tuple[Steps, Floats]:
    """The recorded steps, and when each ended, in seconds since the Unix epoch."""
    steps = _union(points.steps for points in run.series.values())
    times = np.full(len(steps), math.nan)
    for points in run.series.values():
        at = np.searchsorted(steps, points.steps)
        times[at] = np.fmax(times[at], points.times)
    times = np.fmax.accumulate(times)
    known = times[np.isfinite(times)]
    if len(times) and not len(known) and run.times_expected:
        run.notes.append("it has no times: all its steps have the time when the file was last written")
    return steps, np.where(np.isfinite(times), times, known[0] if len(known) else written)


def _names(run: SourceRun) -> dict[str, str]:
    """The series name of each metric; ``loss`` is first."""
    series = sorted(run.series, key=lambda name: series_name(name) != "loss")
    metrics = list(dict.fromkeys([*series, *run.validations, *run.results]))
    naming = SeriesNames()
    names = dict(zip(metrics, naming.scalars(dict.fromkeys(metrics, 0.0)), strict=True))
    run.series = {name: run.series[name] for name in series}
    run.notes += naming.take_notes()
    return names


def _chunks(
    series: Mapping[str, ImportedMetric], names: Mapping[str, str], steps: Steps, times: Floats, began: float
) -> Iterator[tuple[int, float, float, dict[str, Floats]]]:
    """First step, start, end and series of chunks of consecutive steps.

    A chunk begins one step's time before the end of its first step, by the speed since the step recorded before it.
    """
    if not len(steps):
        return
    rows = {name: np.searchsorted(steps, points.steps) for name, points in series.items()}
    size = -(-len(steps) // _CHUNKS)
    groups = np.flatnonzero(np.diff(steps, prepend=steps[0] - 2) != 1)
    in_group = np.arange(len(steps)) - np.repeat(groups, np.diff(groups, append=len(steps)))
    cuts = np.append(np.flatnonzero(in_group % size == 0), len(steps))
    paces = np.diff(times, prepend=began) / np.diff(steps, prepend=steps[0] - 1)
    block = 0
    while block < len(cuts) - 1:
        block_end = min(max(int(np.searchsorted(cuts, cuts[block] + _BLOCK)), block + 1), len(cuts) - 1)
        edges = cuts[block : block_end + 1]
        dense, present = {}, {}
        for name, points in series.items():
            within = slice(*np.searchsorted(rows[name], (edges[0], edges[-1])))
            dense[name] = np.full(edges[-1] - edges[0], math.nan)
            dense[name][rows[name][within] - edges[0]] = points.values[within]
            present[name] = np.diff(np.searchsorted(rows[name][within], edges)) > 0
        for index, (first, last) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            found = {
                names[name]: values[first - edges[0] : last - edges[0]]
                for name, values in dense.items()
                if present[name][index]
            }
            yield int(steps[first]), float(times[first] - paces[first]), float(times[last - 1]), found
        block = block_end


def _events(run: SourceRun, names: Mapping[str, str], steps: Steps, times: Floats) -> Iterator[EpochEnded | Validated]:
    """The ends of epochs, and the validations."""

    def time_of(time: float, step: int) -> float:
        """A time, or else the time of the last step before ``step``."""
        index = max(int(np.searchsorted(steps, step)) - 1, 0)
        return time if math.isfinite(time) or not len(times) else float(times[index])

    before = run.began
    for epoch in run.epochs:
        time = time_of(epoch.time, epoch.step)
        metrics = {names[name]: value for name, value in epoch.metrics.items()}
        seconds = max(time - before, 0.0) if math.isfinite(before) else 0.0
        yield EpochEnded(time=time, epoch=epoch.number, step=epoch.step, metrics=metrics, seconds=seconds)
        before = time
    ends = [epoch.step for epoch in run.epochs]
    for step, (time, metrics) in sorted(_by_step(run.validations, names).items()):
        passed = bisect_right(ends, step)
        number = run.epochs[passed - 1].number if passed else 0
        yield Validated(time=time_of(time, step), epoch=number, step=step, metrics=metrics, seconds=0.0)


def _by_step(
    validations: Mapping[str, ImportedMetric], names: Mapping[str, str]
) -> dict[int, tuple[float, dict[str, float]]]:
    """The time and the metrics of each validation by step."""
    found: dict[int, tuple[float, dict[str, float]]] = {}
    for name, points in validations.items():
        rows = zip(points.steps.tolist(), points.times.tolist(), points.values.tolist(), strict=True)
        for step, at, value in rows:
            before, metrics = found.get(step, (math.nan, {}))
            found[step] = np.fmax(before, at).item(), {**metrics, names[name]: value}
    return found


def _end(
    run: SourceRun, names: Mapping[str, str], steps: Steps, times: Floats, ended: float, seconds: float
) -> RunEnded:
    last = run.epochs[-1].metrics if run.epochs else {name: each.values[-1] for name, each in run.series.items()}
    metrics = {names[name]: float(value) for name, value in {**last, **run.results}.items()}
    metrics |= {VALIDATION_PREFIX + names[name]: float(each.values[-1]) for name, each in run.validations.items()}
    taken, took = (float(each[-1] - each[0]) if len(each) else 0.0 for each in (steps, times))
    measured = [*run.validations.values(), *(media.points for media in run.media)]
    return RunEnded(
        time=ended,
        outcome=Outcome.FINISHED,
        steps=int(steps[-1]) + 1 if len(steps) else max(int(each.steps[-1]) for each in measured),
        epochs=run.epochs[-1].number if run.epochs else 0,
        seconds=seconds,
        steps_per_second=rate_of(taken, took) or 0.0,
        metrics=metrics,
    )


def _setting(value: Any) -> str | int | float | bool | None:
    """A hyperparameter as a setting of a run, which has no lists and no mappings."""
    return value if value is None or isinstance(value, bool | int | float | str) else json.dumps(value)


def valid_tag(text: str) -> str:
    """A tag of another tool as one that is valid here; empty if nothing of it is."""
    return re.sub(r"[^\w./@:-]+", "-", text).strip("-./@:_")[:40]


def _line(text: str, length: int) -> str:
    return " ".join(printable_line(text).split())[:length]


def remove_abandoned() -> None:
    """Remove the directories of imports that no process writes."""
    for directory in runs_directory().glob(_NAMES):
        try:
            is_old = time.time() - directory.stat().st_mtime > _ABANDONED_SECONDS
        except OSError:  # its import has just ended
            continue
        if is_old and not is_locked(directory):
            shutil.rmtree(directory, ignore_errors=True)


def write_media(writer: RunWriter, run: SourceRun, began: float) -> None:
    """Write images, texts and histograms by rising step, and note which ones cannot be read or are too large.

    Args:
        writer: Writes the run.
        run: The run, whose notes are extended.
        began: Seconds since the Unix epoch: the time of items without one.

    Raises:
        RunError: The run cannot be written.
    """
    unreadable: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by kind and reason; by name
    too_large: Counter[str] = Counter()  # by name
    first_error = ""
    which = np.repeat(np.arange(len(run.media)), [len(media.points.steps) for media in run.media])
    rows = np.concatenate([np.empty(0, np.int64), *(np.arange(len(media.points.steps)) for media in run.media)])
    steps = np.concatenate([np.empty(0, np.int64), *(media.points.steps for media in run.media)])
    for at in np.argsort(steps, kind="stable"):
        media, row = run.media[which[at]], rows[at]
        time = float(media.points.times[row])
        try:
            item = media.read(float(media.points.values[row]))
            writer.write_media(int(steps[at]), time if math.isfinite(time) else began, media.name, item)
        except ValueError as error:
            unreadable[media.kind, str(error)][media.name] += 1
        except RunError as error:
            if not isinstance(error.__cause__, ValueError):  # such as a full disk
                raise
            too_large[media.name] += 1
            first_error = first_error or str(error)
    for (kind, reason), names in unreadable.items():
        run.notes.append(f"left out: {numbers.counted(names.total(), kind)} in {numbers.listed(names)}: {reason}")
    if too_large:
        count = f"{too_large.total():,} of the images, texts and histograms"
        run.notes.append(f"left out: {count} in {numbers.listed(too_large)}: {first_error}")
