"""How a run learns with a changed plan: against its own steps before, or against the run that it was made from."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.events import ModelBuilt, Validated
from accel_engine.launch.cure_kinds import OTHER_LOSS
from accel_engine.launch.cure_outcome import BLOCKS, Outcome, beats_trend, compare_results, compare_series
from accel_engine.launch.paused_run import read_run
from accel_engine.run import RunReader
from accel_engine.run.series_names import is_better_lower

LEARNING_STEPS = 200
"""Steps after a change of what the run learns that are compared with as many before."""

LEAST_VALIDATIONS = 4
"""Validations of the same epochs from which two runs are compared by them."""

HARDER_TRAINING = frozenset({"augmentation", "weight_decay", "freeze"})
"""Fields with which the loss of training rises, so that validations can be better all the same."""


def compare_continued(directory: Path, step: int, changes: Mapping[str, Any]) -> Outcome | None:
    """Compare the losses of a run after a change with those before it; ``None`` while there are too few steps.

    Args:
        directory: The run's directory.
        step: The first step with the change.
        changes: The changed fields.
    """
    name = _trained_series(changes, directory)
    if name is None:
        return None
    count = max(2 * BLOCKS, min(LEARNING_STEPS, step))
    after = _values(directory, name, step, step + 2 * count)[-count:]
    if last_step(directory) < step + 2 * count and bool(np.isfinite(after).all()):
        return None
    before = _values(directory, name, max(0, step - count), step)
    lower = is_better_lower(name) is not False
    outcome = compare_series(before, after, name, lower_is_better=lower)
    return outcome and replace(outcome, is_better=beats_trend(before, after, lower_is_better=lower))


def compare_runs(source: Path, changed: Path, changes: Mapping[str, Any]) -> Outcome | None:
    """Compare two runs after as many examples; ``None`` while there are too few.

    They are compared by their validations if these are enough, else by the losses of steps.

    Args:
        source: The run without the changes.
        changed: The run with them.
        changes: The changed fields.
    """
    found = _compare_validations(source, changed, changes)
    name = _trained_series(changes, source, changed)
    if found is not None or name is None:
        return found
    batches = _batch(source), _batch(changed)
    examples = min(last_step(source) * batches[0], last_step(changed) * batches[1])
    stops = [examples // batch for batch in batches]
    is_enough = min(stops) >= LEARNING_STEPS or examples == last_step(source) * batches[0]
    if not is_enough and read_run(changed).status.live:
        return None
    width = min(LEARNING_STEPS * batches[0], examples // 2)
    before, after = (
        _values(directory, name, stop - width // batch, stop)
        for directory, stop, batch in zip((source, changed), stops, batches, strict=True)
    )
    return compare_series(before, after, name, lower_is_better=is_better_lower(name) is not False)


def has_results(directory: Path) -> bool:
    """Whether a run has enough steps or validations to compare another one with it."""
    return last_step(directory) >= 4 * BLOCKS or len(_validations(directory)) >= LEAST_VALIDATIONS


def last_step(directory: Path) -> int:
    """Steps that a run has taken."""
    with closing(RunReader(directory)) as reader:
        new = reader.new_steps()
    return new.stop if new else 0


def _compare_validations(source: Path, changed: Path, changes: Mapping[str, Any]) -> Outcome | None:
    """Compare the validations of two runs after the same epochs."""
    found = _validations(source), _validations(changed)
    common = sorted(found[0].keys() & found[1].keys())[-BLOCKS:]
    if len(common) < LEAST_VALIDATIONS:
        return None
    if HARDER_TRAINING & changes.keys() and common[-1] < max(found[0]) and read_run(changed).status.live:
        return None  # these pay at the end
    metrics = set[str].intersection(*(set(each[epoch]) for each in found for epoch in common))
    if (name := _comparable(metrics, changes)) is None:
        return None
    before, after = ([each[epoch][name] for epoch in common] for each in found)
    shown = f"validation {name.replace('_', ' ')}"
    return compare_results(before, after, shown, lower_is_better=is_better_lower(name) is not False)


def _validations(directory: Path) -> dict[int, dict[str, float]]:
    """The metrics of the last validation of each epoch."""
    with closing(RunReader(directory, steps=False)) as reader:
        events = [event for _, event in reader.events(0, Validated) if isinstance(event, Validated)]
    return {
        event.epoch: {name: np.nan if value is None else float(value) for name, value in event.metrics.items()}
        for event in events
        if not event.by_command
    }


def _trained_series(changes: Mapping[str, Any], *directories: Path) -> str | None:
    """The series of steps that the runs can be compared by; ``None`` if there is none."""
    if HARDER_TRAINING & changes.keys():
        return None
    names = []
    for directory in directories:
        with closing(RunReader(directory, steps=False)) as reader:
            names.append({*reader.series()})
    return _comparable(set[str].intersection(*names), changes)


def _comparable(names: set[str], changes: Mapping[str, Any]) -> str | None:
    """The loss; a metric if the losses are not the same function, and no accuracy if rare classes count more."""
    if not OTHER_LOSS & changes.keys():
        return "loss" if "loss" in names else None
    others = sorted(name for name in names if not name.endswith("loss") and is_better_lower(name) is False)
    if "class_weight" in changes:
        others = [name for name in others if "accuracy" not in name]
    return next((name for name in others if "accuracy" in name), next(iter(others), None))


def _values(directory: Path, name: str, first: int, last: int) -> npt.NDArray[np.floating]:
    with closing(RunReader(directory, steps=False)) as reader:
        parts = [batch.series[name] for batch in reader.steps(first, last) if name in batch.series]
    return np.concatenate(parts) if parts else np.zeros(0)


def _batch(directory: Path) -> int:
    """The global batch, in examples; 1 if it is unknown."""
    with closing(RunReader(directory, steps=False)) as reader:
        built = [event for _, event in reader.events(0, ModelBuilt) if isinstance(event, ModelBuilt)]
    return (built[-1].global_batch if built else 1) or 1
