"""Loads the initial weights of a run from a file or from another run."""

import gc
import logging
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import keras
import numpy as np
import tensorflow as tf

from accel_engine.errors import PlanError, RunError
from accel_engine.keras_support.model_structure import parameter_count, walk
from accel_engine.models.pretrained_application import HEAD
from accel_engine.plan import Plan
from accel_engine.plan.task_choices import IMAGENET
from accel_engine.private_names.keras_names import all_layers
from accel_engine.run.directory.run_paths import CHECKPOINTS, trained_model
from accel_engine.run.history.chosen_checkpoint import chosen_step
from accel_engine.training.core.saved_weights import has_averages, restore_weights, whole_checkpoint
from accel_engine.user_code import reason
from accel_engine.words import numbers

_ATTEMPTS = 2
"""Number of checkpoints to try: one of a run that is still training may be deleted before it is read."""

_LISTED = 4
"""Number of new layers that a note names."""


def load_initial_weights(model: keras.Model, plan: Plan) -> tuple[list[str], list[str]]:
    """Load the initial weights that a plan names; returns notes for the user, and warnings.

    From a run they are from its newest checkpoint, or of the best one if the run has ``restore_best``, if all of
    them fit; the moving averages of weights that have one. Otherwise, from its ``model.keras`` or another file, each
    layer takes its weights as ``load_weights(..., skip_mismatch=True)`` does: the ones at the same place in the model,
    if they have the same shapes.

    Args:
        model: Built. Weights from ImageNet it has already.
        plan: The plan, with an absolute path.

    Raises:
        PlanError: The weights cannot be read, or none of them fits.
    """
    source = plan.initial_weights
    if not source:
        return [], []
    if source == IMAGENET:
        gray = "; the images' one channel is repeated to three" if model.input_shape[-1] == 1 else ""
        taken = {id(weight) for layer in model.layers if layer.name != HEAD for weight in layer.weights}
        return [_note(model, taken, "ImageNet") + gray], []
    path = Path(source)
    if path.is_dir():
        taken, title = _from_run(model, plan, path)
    else:
        taken, title = _from_file(model, plan, path, path.name), path.name
    note = _note(model, taken, title)
    if parameter_count(weight for weight in model.weights if id(weight) in taken) < model.count_params() / 2:
        return [], [f"{note}: fewer than half of the model's parameters"]
    return [note], []


def _from_run(model: keras.Model, plan: Plan, directory: Path) -> tuple[set[int], str]:
    """Load the weights of a run; returns the ids of those that were taken, and where they are from."""
    saved, problem = trained_model(directory), "it has no checkpoint"
    for _ in range(_ATTEMPTS):
        try:
            if not (step := chosen_step(directory)):
                break
            with whole_checkpoint(directory / CHECKPOINTS, step) as path:
                kind = "moving averages of " if has_averages(path) else ""
                if _restore(model, path):
                    return {id(weight) for weight in model.weights}, f"{kind}step {step} of run {directory.name}"
        except RunError as error:
            problem = str(error)
        else:
            problem = "its checkpoint does not fit this model: finish it, or use the same model and data"
            break
    if saved is None:
        words = f"run {directory.name} has no model.keras, and {problem}"
        raise PlanError("initial_weights", str(directory), words)
    title = f"model.keras of run {directory.name}"
    return _from_file(model, plan, saved, title), title


def _restore(model: keras.Model, checkpoint: str) -> bool:
    """Load the weights of a checkpoint; returns whether all of them fit. Otherwise the model keeps its own.

    Raises:
        OpError: The checkpoint cannot be read.
    """
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # an unfinished restoration warns of each weight when it is deleted
    before = [(weight, weight.numpy()) for weight in model.weights]
    try:
        restore_weights(model, checkpoint, averages=True)
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        for weight, value in before:
            weight.assign(value)
        if isinstance(error, tf.errors.OpError) and not isinstance(error, tf.errors.InvalidArgumentError):  # a dtype
            raise
        return False
    finally:
        gc.collect()
        logger.setLevel(level)
    return True


def _from_file(model: keras.Model, plan: Plan, path: Path, title: str) -> set[int]:
    """Load the weights of a file that fit; returns their ids."""
    with _marked(model) as taken:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # names the layers that do not fit, as the note does
                model.load_weights(str(path), skip_mismatch=True)
        except Exception as error:
            problem = f"{title} is damaged" if _is_damaged(path) else f"cannot be read: {reason(error)}"
            raise PlanError("initial_weights", plan.initial_weights, problem) from error
    if not taken:
        words = f"no layer of model {plan.model} has weights of the same shapes at the same place as in {title}"
        raise PlanError("initial_weights", plan.initial_weights, words)
    return taken


def _is_damaged(path: Path) -> bool:
    """Whether a ``.keras`` file, a zip archive, is not as it was written; other files do not tell."""
    if path.suffix != ".keras":
        return False
    try:
        with ZipFile(path) as archive:
            return archive.testzip() is not None
    except (BadZipFile, OSError, ValueError, NotImplementedError, zlib.error):
        return True


@contextmanager
def _marked(model: keras.Model) -> Iterator[set[int]]:
    """Find out which weights are loaded inside the ``with`` block, which Keras does not tell; yields their ids.

    They are NaN until they are loaded. A layer of which not all were loaded gets back its former weights. Other
    variables, such as an optimizer's, keep their values.
    """
    weights = [weight for weight in model.weights if "float" in str(weight.dtype)]
    before = {id(weight): weight.numpy() for weight in weights}
    state = model.optimizer.variables if model.compiled and model.optimizer is not None else []
    others = [variable for variable in (*model.variables, *state) if id(variable) not in before]
    kept = [(variable, variable.numpy()) for variable in others]
    for weight in weights:
        weight.assign(np.full(weight.shape, np.nan))
    taken: set[int] = set()
    try:
        yield taken
    finally:
        loaded = {id(weight) for weight in weights if not np.isnan(weight.numpy().astype(np.float32)).all()}
        for layer in all_layers(model):
            own = {id(weight) for weight in layer.weights}
            if len(list(all_layers(layer))) == 1 and not own <= loaded | (own - before.keys()):
                loaded -= own
        for weight in weights:
            if id(weight) not in loaded:
                weight.assign(before[id(weight)])
        for variable, value in kept:
            variable.assign(value)
        taken |= loaded


def _note(model: keras.Model, taken: set[int], title: str) -> str:
    """How many of the weights were taken, and which layers start anew."""
    weights = model.weights
    count = sum(id(weight) in taken for weight in weights)
    layers = [layer for layer, _ in walk(model) if not isinstance(layer, keras.Model)]
    new = [layer for layer in dict.fromkeys(layers) if any(id(weight) not in taken for weight in layer.weights)]
    shown = f"; new: {numbers.listed(map(_described, new), _LISTED)}" if new else ""
    return f"initial weights from {title}: {count} of {len(weights)} weights{shown}"


def _described(layer: Any) -> str:
    size = next((size for name in ("units", "filters") if isinstance(size := getattr(layer, name, None), int)), None)
    return layer.name if size is None else f"{layer.name} ({size} outputs)"
