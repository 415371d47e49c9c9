"""Compares two runs of one plan, bit for bit."""

import io
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import tensorflow as tf

from accel_engine.events import EpochEnded, RunEnded, Validated
from accel_engine.run import RunReader
from accel_engine.run.directory.run_paths import CHECKPOINTS, MODEL, latest_checkpoint
from accel_engine.run.reading.reader import drop_discarded

_NOT_COMPARED = ("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter", "position/")
"""Variables of a checkpoint: what has no effect, and the position in a stream, which is the end of an epoch or the
beginning of the next."""


def differences(run: Path, other: Path, *, with_means: bool = True) -> list[str]:
    """What differs: losses of the steps, means of epochs, validations, the end, the last weights, the model.

    Args:
        run: A run.
        other: Another one.
        with_means: Whether the means of epochs are compared. Those of a continued epoch count its steps alike, also
            the last one of a stream, which may have fewer examples; see docs/data.md.
    """
    found, expected = contents(run, with_means=with_means), contents(other, with_means=with_means)
    return [
        f"{name}: {_shown(found.get(name))} instead of {_shown(expected.get(name))}"
        for name in sorted({*found, *expected})
        if not _equal(found.get(name), expected.get(name))
    ]


def contents(run: Path, *, with_means: bool) -> dict[str, Any]:
    """What a run has recorded and saved, by name."""
    with closing(RunReader(run)) as reader:
        update = reader.poll()
    events = drop_discarded(update.events)
    values: dict[str, Any] = {
        f"series {name}": np.concatenate([chunk.series[name] for chunk in update.chunks])
        for name in (update.chunks[0].series if update.chunks else ())
    }
    values["steps recorded"] = [chunk.first_step + index for chunk in update.chunks for index in range(chunk.count)]
    for event in events:
        if isinstance(event, EpochEnded):
            values[f"epoch {event.epoch}"] = (event.step, event.metrics if with_means else {}, event.waited)
        elif isinstance(event, Validated):
            name, validated = f"validation at step {event.step}", (event.epoch, event.metrics, event.waited)
            if name in values and not _equal(values[name], validated):
                name += ", again"
            values[name] = validated
    if isinstance(events[-1], RunEnded):
        ended = events[-1]
        metrics = ended.metrics if with_means else {}
        values["end"] = (ended.outcome, ended.steps, ended.epochs, ended.reason, metrics, ended.model_step)
    return values | _last_checkpoint(run) | _model(run)


def _last_checkpoint(run: Path) -> dict[str, Any]:
    step = latest_checkpoint(run)
    if not step:
        return {}
    reader = tf.train.load_checkpoint(str(run / CHECKPOINTS / f"step-{step}"))
    names = [name for name in reader.get_variable_to_shape_map() if not name.startswith(_NOT_COMPARED)]
    return {"last checkpoint": step} | {f"checkpoint {name}": reader.get_tensor(name) for name in names}


def _model(run: Path) -> dict[str, Any]:
    if not (run / MODEL).is_file():
        return {}
    values: dict[str, Any] = {}
    with zipfile.ZipFile(run / MODEL) as archive, h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as weights:
        weights.visititems(
            lambda name, item: values.update({f"model {name}": item[()]}) if isinstance(item, h5py.Dataset) else None
        )
    return values


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, np.ndarray) and isinstance(other, np.ndarray):
        return value.shape == other.shape and value.tobytes() == other.tobytes()
    return repr(value) == repr(other)  # so that NaN equals NaN


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.ravel()[:4]}"
    return repr(value)[:300]
