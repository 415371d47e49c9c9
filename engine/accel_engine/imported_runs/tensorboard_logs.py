"""Reads the runs in a TensorBoard log directory.

Each directory of event files is a run, but a directory named ``train``, ``validation`` or ``devices`` is a part of the
run in the directory above it, as Keras' callback and ``accel-tui export`` write them.
"""

import math
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from accel_engine.export.run_tables import shortest_texts
from accel_engine.imported_runs.event_values import EventValues
from accel_engine.imported_runs.source_run import (
    TRAINING_WORDS,
    VALIDATION_WORDS,
    Epoch,
    ImportedMetric,
    RunSource,
    SourceMedia,
    SourceRun,
    free_name,
)
from accel_engine.run.store.series_names import LEARNING_RATE
from accel_engine.tensorboard.run_log import CUSTOM_PREFIX, DEVICES, THROUGHPUT_TAG

FORMAT = "TensorBoard"

_OWN = ".accel-tui"
"""Suffix of event files that this program wrote."""

_EPOCH, _BATCH, _EVALUATION, _VS_ITERATIONS = "epoch_", "batch_", "evaluation_", "_vs_iterations"
"""The beginnings and the end of the tags of Keras' callback."""

_KERAS = {f"{_EPOCH}loss", f"{_BATCH}loss", f"{_EVALUATION}loss{_VS_ITERATIONS}"}
"""Tags that identify the logs of Keras' callback."""


def find(root: Path) -> list[RunSource]:
    """The runs in a directory, sorted by path, or the run of one event file."""
    if root.is_file():
        return [RunSource(root, FORMAT, (root,), partial(_read, root.parent.name, {root.parent: (root,)}))]
    parts: dict[Path, dict[Path, tuple[Path, ...]]] = {}
    for directory, files in _event_files(root):
        word = directory.name.lower()
        is_part = directory != root and word in TRAINING_WORDS | VALIDATION_WORDS | {DEVICES}
        parts.setdefault(directory.parent if is_part else directory, {})[directory] = files
    return [
        RunSource(
            run,
            FORMAT,
            tuple(file for each in found.values() for file in each),
            partial(_read, _name(root, run), found),
        )
        for run, found in sorted(parts.items())
    ]


def is_event_file(name: str) -> bool:
    """Whether TensorBoard takes a file of this name for an event file."""
    return "tfevents" in name and not name.endswith(".profile-empty")


def _event_files(root: Path) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """The directories with event files, each with its event files."""
    for directory, _, names in os.walk(root):
        if files := tuple(Path(directory, name) for name in sorted(names) if is_event_file(name)):
            yield Path(directory), files


def _name(root: Path, run: Path) -> str:
    return root.name if run == root else str(run.relative_to(root))


def _read(name: str, parts: Mapping[Path, tuple[Path, ...]]) -> SourceRun:
    run = SourceRun(name=name)
    training: dict[str, ImportedMetric] = {}
    validation: dict[str, ImportedMetric] = {}
    is_own = False
    for directory, files in parts.items():
        found, part = EventValues(files), directory.name.lower()
        run.notes += found.notes
        run.began = np.fmin(run.began, found.began).item()
        is_own = is_own or any(file.name.endswith(_OWN) for file in files)
        if part == DEVICES and is_own:
            run.notes.append(f"device metrics are left out: {len(found.points):,} tags")
        else:
            tags = validation if part in VALIDATION_WORDS else training
            for tag, points in found.points.items():
                tags[free_name(tags, tag, f"{part}/{tag}")] = points
            _add_media(run, found.media, part)
    if is_own:
        _add_own(run, training, validation)
    elif not _KERAS.isdisjoint((*training, *validation)):
        _add_keras(run, training, validation)
    else:
        run.add(training)
        run.add(validation, validated=True)
    run.validations = {name: _shortest(points) for name, points in run.validations.items()}
    return run


def _add_media(run: SourceRun, found: Sequence[SourceMedia], part: str) -> None:
    """Add images, texts and histograms; in validation, and where names are taken, with the part as a prefix."""
    for media in found:
        taken = {other.name for other in run.media if other.kind == media.kind}
        names = (media.name, f"{part}/{media.name}")[part in VALIDATION_WORDS :]
        run.media.append(replace(media, name=free_name(taken, *names)))


def _add_own(run: SourceRun, training: Mapping[str, ImportedMetric], validation: Mapping[str, ImportedMetric]) -> None:
    """Add what this program has exported; the speed follows from the times of the steps."""
    for tag, points in training.items():
        if tag != THROUGHPUT_TAG:
            run.series[tag.removeprefix(CUSTOM_PREFIX)] = points
    run.validations |= validation


def _add_keras(
    run: SourceRun, training: Mapping[str, ImportedMetric], validation: Mapping[str, ImportedMetric]
) -> None:
    """Add what Keras' callback logged: batches counted from 1, epochs from 0, evaluations at the steps taken.

    Without batches, the last step of each epoch gets the epoch's values; without batches and evaluations, an epoch
    counts as one step.
    """
    batches, epochs, validated = (
        {tag.removeprefix(prefix): points for tag, points in tags.items() if tag.startswith(prefix)}
        for tags, prefix in ((training, _BATCH), (training, _EPOCH), (validation, _EPOCH))
    )
    evaluated = {
        tag.removeprefix(_EVALUATION).removesuffix(_VS_ITERATIONS): points
        for tag, points in validation.items()
        if tag.startswith(_EVALUATION)
    }
    ends = _epoch_ends([*epochs.values(), *validated.values()], [*batches.values(), *evaluated.values()])

    def at_ends(points: ImportedMetric) -> ImportedMetric:
        return points.at(np.array([ends[epoch] for epoch in points.steps.tolist()], np.int64))

    run.add({tag: points for tag, points in training.items() if not tag.startswith((_BATCH, _EPOCH))})
    run.series |= {name: points.at(np.maximum(points.steps - 1, 0)) for name, points in batches.items()}
    for name, points in epochs.items():
        if name == LEARNING_RATE or not batches:
            last = at_ends(points)
            run.series[name] = last.at(last.steps - 1)
    epochs.pop(LEARNING_RATE, None)
    run.validations |= {name: at_ends(points) for name, points in validated.items()} | evaluated
    means = {name: at_ends(_shortest(points)) for name, points in epochs.items()}
    for number, step in ends.items():
        run.epochs.append(Epoch(number + 1, step, *_at(means, step)))
    run.media = [
        replace(media, points=at_ends(media.points)) if _is_of_epochs(media, ends) else media for media in run.media
    ]


def _is_of_epochs(media: SourceMedia, ends: Container[int]) -> bool:
    """Whether Keras' callback logged the histograms or images of a weight, by epoch."""
    return media.name.endswith(f"/{media.kind}") and all(epoch in ends for epoch in media.points.steps.tolist())


def _epoch_ends(epochs: Sequence[ImportedMetric], counted: Sequence[ImportedMetric]) -> dict[int, int]:
    """The steps taken by the end of each epoch, counted from 0.

    Args:
        epochs: Values by epoch.
        counted: Values by the steps taken; without any, an epoch is one step.
    """
    times = {epoch: time for points in epochs for epoch, time in zip(points.steps.tolist(), points.times, strict=True)}
    if not counted:
        return {epoch: epoch + 1 for epoch in sorted(times)}
    at = np.concatenate([points.times for points in counted])
    order = np.argsort(at, kind="stable")
    taken = np.maximum.accumulate(np.concatenate([points.steps for points in counted])[order])
    return {epoch: int(taken[max(np.searchsorted(at[order], times[epoch], "right") - 1, 0)]) for epoch in sorted(times)}


def _at(means: Mapping[str, ImportedMetric], step: int) -> tuple[float, dict[str, float]]:
    """The latest time, and the values, of points at a step."""
    found = {name: points for name, points in means.items() if step in points.steps}
    index = {name: int(np.searchsorted(points.steps, step)) for name, points in found.items()}
    time = max((float(found[name].times[at]) for name, at in index.items()), default=math.nan)
    return time, {name: float(found[name].values[at]) for name, at in index.items()}


def _shortest(points: ImportedMetric) -> ImportedMetric:
    """The points, each float32 value as the number with the fewest digits: 0.1 in place of 0.10000000149."""
    return ImportedMetric(
        points.steps, points.times, shortest_texts(points.values.astype(np.float32)).astype(np.float64)
    )
