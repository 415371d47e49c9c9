"""What tests of imports read of a run."""

from contextlib import closing
from pathlib import Path

import numpy as np

from accel_engine.events import EpochEnded, Event, Validated
from accel_engine.imported_runs.source_run import SourceRun
from accel_engine.run import RunReader
from accel_engine.run.media import LoggedItem, pack_media


def series(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values of every series, as exactly as float32 is printed."""
    with closing(RunReader(directory)) as reader:
        new = reader.new_steps()
        batches = list(reader.steps(0, new.stop)) if new else []
    found: dict[str, list[tuple[int, float]]] = {}
    for batch in batches:
        for name, values in batch.series.items():
            known = np.isfinite(values)
            pairs = zip(batch.steps[known].tolist(), values[known].astype(str).astype(float).tolist(), strict=True)
            found.setdefault(name, []).extend(pairs)
    return found


def values(run: SourceRun) -> dict[str, list[tuple[int, float]]]:
    """Steps and values of every series and validation before they are imported."""
    every = {**run.series, **{f"val {name}": points for name, points in run.validations.items()}}
    return {name: list(zip(each.steps.tolist(), each.values.tolist(), strict=True)) for name, each in every.items()}


def times(directory: Path) -> dict[int, float]:
    """The end time of each recorded step."""
    with closing(RunReader(directory)) as reader:
        new = reader.new_steps()
        batches = list(reader.steps(0, new.stop)) if new else []
    return {step: time for each in batches for step, time in zip(each.steps.tolist(), each.times.tolist(), strict=True)}


def events(directory: Path, *kinds: type[Event]) -> list[Event]:
    """The events of some kinds, in order; all by default."""
    with closing(RunReader(directory)) as reader:
        return [event for _, event in reader.events(0, *kinds)]


def validations(directory: Path) -> dict[int, dict[str, float]]:
    """The metrics of validations by step."""
    return {event.step: event.metrics for event in events(directory, Validated) if isinstance(event, Validated)}


def epochs(directory: Path) -> list[tuple[int, int, dict[str, float]]]:
    """Number, step and metrics of each epoch."""
    found = (event for event in events(directory, EpochEnded) if isinstance(event, EpochEnded))
    return [(event.epoch, event.step, event.metrics) for event in found]


def items(directory: Path) -> list[LoggedItem]:
    """Images, texts and histograms, in the order in which they were written."""
    with closing(RunReader(directory)) as reader:
        return list(reader.media_items())


def stored(directory: Path) -> list[tuple[str, int, float, tuple[str, str, bytes]]]:
    """Name, step and time of each item, and its contents in a form that can be compared, sorted."""
    return sorted((each.name, each.step, each.time, pack_media(each.item)) for each in items(directory))
