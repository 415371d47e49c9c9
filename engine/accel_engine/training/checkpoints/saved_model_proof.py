"""Loads the saved model of a run again, and compares it with the trained one: Keras may lose a part in silence.

A layer whose ``get_config`` lacks an argument loads with its default, and so does a loss whose arguments Keras forgets.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import keras
import numpy as np
import tensorflow as tf

from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.errors import ModelError
from accel_engine.keras_support.model_structure import fixed_batch, has_custom_train_step
from accel_engine.memory import available_memory
from accel_engine.models.model_entry import BuildOptions
from accel_engine.models.saved_model import load_saved
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.metric_states import compute_loss, mean_loss

EXAMPLES = 8
"""Training examples of which outputs and losses are compared."""

TOLERANCE = 1e-3
"""The largest difference, relative to the largest output, or to the loss."""

MEMORY_FACTOR = 4
"""The free memory of the host over the size of the file, below which the model is not loaded again."""


_KNOWN = ("keras", "accel_engine", "builtins")
"""Packages whose classes load as they were saved; Keras gives ``builtins`` for functions."""


def has_own_classes(file: Path) -> bool:
    """Whether a saved model has a layer, loss or other object of a class that neither Keras nor this program defines.

    Args:
        file: The model's ``.keras`` file, of which only its description is read.
    """
    with ZipFile(file) as parts:
        description = json.loads(parts.read("config.json"))
    return any(module.partition(".")[0] not in _KNOWN for module in _modules(description))


def _modules(description: Any) -> Iterator[str]:
    """The modules of all objects in a description by Keras."""
    if isinstance(description, dict):
        module = description.get("module")
        if isinstance(module, str) and "class_name" in description:
            yield module
        description = list(description.values())
    if isinstance(description, list):
        for each in description:
            yield from _modules(each)


def saving_faults(assembly: Assembly, file: Path, *, silent_only: bool = False) -> str:
    """Differences of a saved model from the trained one, or why it cannot be loaded; empty if it is the same.

    Both compute on the CPU, where the same weights give the same outputs. Not compared are a model of several processes
    or on a TPU, and one that is large for the memory of the host; nor the outputs, but the weights, of a model with
    preprocessing or with targets in their units, and where the data is a stream or too short.

    Args:
        assembly: The model, with the weights that were saved.
        file: The model's file.
        silent_only: Whether a model that cannot be loaded, which an error says later, is not a fault.
    """
    if not assembly.single_process or assembly.on_tpu or MEMORY_FACTOR * file.stat().st_size > available_memory():
        return ""
    plan, model = assembly.plan, assembly.model
    options = BuildOptions(custom_objects=plan.custom_objects, unsafe=plan.unsafe_load == "on")
    with tf.device("CPU:0"):
        try:
            loaded = load_saved(str(file), options)
        except ModelError as error:
            return "" if silent_only else f"it cannot be loaded again here: {str(error).partition(': ')[2]}"
        if not _has_equal_weights(model, loaded):
            return "loaded again, it has other weights than the trained model"
        train = assembly.dataset.train
        if assembly.dataset.preprocess or assembly.dataset.target_scaling or not isinstance(train, Split):
            return ""
        if len(train) < (count := fixed_batch(model) or min(EXAMPLES, len(train))):
            return ""
        raw: Batch = map_structure(tf.convert_to_tensor, train.take(np.arange(count)))
        return _compare(model, loaded, assembly.prepare(raw))


def _has_equal_weights(model: keras.Model, loaded: keras.Model) -> bool:
    """Whether a model has the weights of another one; weights of a preprocessing come before them."""
    ours, theirs = ([each.numpy() for each in one.weights] for one in (model, loaded))
    if not ours:
        return True
    pairs = zip(ours, theirs[-len(ours) :], strict=True)
    return len(ours) <= len(theirs) and all(
        np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in pairs
    )


def _compare(model: keras.Model, loaded: keras.Model, batch: Batch) -> str:
    outputs = [model(batch.inputs, training=False) for _ in range(2)]
    if _difference(*outputs) > TOLERANCE:  # it draws random numbers
        return ""
    if (difference := _difference(outputs[0], loaded(batch.inputs, training=False))) > TOLERANCE:
        return (
            f"loaded again, its outputs differ by {difference:.2g} of the largest one: does get_config of each layer "
            "of your own have all of its arguments?"
        )
    if has_custom_train_step(model) or getattr(loaded, "loss", None) is None:
        return ""
    losses = [float(mean_loss(compute_loss(each, batch, outputs[0], training=False))) for each in (model, loaded)]
    if not math.isclose(*losses, rel_tol=TOLERANCE, abs_tol=1e-6) and np.isfinite(losses).all():
        return (
            f"loaded again, its loss of {len(flatten(batch.inputs)[0])} examples is {losses[1]:.4g}, not "
            f"{losses[0]:.4g}: compile it again before you train or evaluate it elsewhere"
        )
    return ""


def _difference(ours: Any, theirs: Any) -> float:
    """The largest difference of two outputs, relative to the largest number; 0 if both are not finite there."""
    found = 0.0
    for one, other in zip(keras.tree.flatten(ours), keras.tree.flatten(theirs), strict=True):
        numbers = [np.asarray(keras.ops.convert_to_numpy(each), np.float64) for each in (one, other)]
        both = np.isfinite(numbers[0]) & np.isfinite(numbers[1])
        if both.any():
            scale = max(float(np.abs(numbers[0][both]).max()), 1e-30)
            found = max(found, float(np.abs(numbers[0] - numbers[1])[both].max()) / scale)
        if not np.array_equal(np.isfinite(numbers[0]), np.isfinite(numbers[1])):
            return math.inf
    return found
