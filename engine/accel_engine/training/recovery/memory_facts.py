"""Finds out what can be done if an assembled training runs out of memory."""

import os
import re
from typing import Any

import keras

from accel_engine.devices.cuda_visible_devices import gpu_choice
from accel_engine.keras_support.divisibility import why_indivisible
from accel_engine.keras_support.losses import is_keras_defined, is_mean
from accel_engine.keras_support.model_structure import walk
from accel_engine.plan.memory_cures import MemoryFacts
from accel_engine.private_names.keras_names import all_layers
from accel_engine.training.autotuning.candidates import alternative_mode, plan_mode
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.feed import CachedFeed
from accel_engine.training.core.rematerialization.division import divide

MIN_CACHED_BYTES = 1 << 24
"""Bytes of cached training data from which it is worthwhile to stream it instead."""

_BATCH_LAYERS = {"BatchNormalization": "batch normalization", "SpectralNormalization": "spectral normalization"}
"""Keras' layers whose state or outputs depend on the whole batch."""

_RATES = ("rate", "dropout", "recurrent_dropout", "stddev")
"""Attributes of Keras' random layers that are 0 if they draw nothing."""


def memory_facts(assembly: Assembly) -> MemoryFacts:
    """What decides which cures a training has that runs out of memory."""
    model, custom_step = assembly.model, assembly.has_custom_train_step
    can_split = not custom_step and is_mean(model.loss) and not why_indivisible(model) and not _is_stateful(model)
    data = assembly.dataset.train
    caches = isinstance(assembly.feed, CachedFeed) and getattr(data, "nbytes", 0) >= MIN_CACHED_BYTES
    alternative = alternative_mode(assembly, plan_mode(assembly))
    return MemoryFacts(
        batch=assembly.step_counts.per_replica_batch,
        can_split=can_split,
        splitting_changes=splitting_changes(model) if can_split else (),
        can_recompute=not custom_step and not assembly.coordinated,
        caches_data=caches,
        tries_xla=alternative is not None and alternative.xla,
        on_host=assembly.on_cpu,
        variables=gpu_choice(os.environ),
    )


def splitting_changes(model: keras.Model) -> tuple[str, ...]:
    """What differs if a step takes its batch in micro-batches, besides the rounding of sums; empty if nothing does."""
    layers = [model, *(layer for layer, _ in walk(model))]
    found = [words for layer in layers if (words := _depends_on_batch(layer))]
    if any(_is_random(layer) for layer in all_layers(model)):
        found.append("random layers such as dropout")
    return tuple(dict.fromkeys(found))


def _depends_on_batch(layer: Any) -> str:
    """Why a layer may not compute each example by itself; empty if it does."""
    name = type(layer).__name__
    if name in _BATCH_LAYERS:
        return _BATCH_LAYERS[name]
    if isinstance(layer, keras.layers.Wrapper):
        return _depends_on_batch(layer.layer)
    is_own = not is_keras_defined(layer) or isinstance(layer, keras.layers.Lambda)
    if is_own or not is_keras_defined(getattr(layer, "activation", keras.activations.linear)):
        return f"the code of {re.sub(r'^<|>$', '', layer.name)}"
    operations = getattr(layer, "operations", ())  # of a functional model, not only layers
    if not all(isinstance(operation, keras.Layer) for operation in operations):
        return f"the operations of {layer.name}"
    return ""


def _is_random(layer: Any) -> bool:
    """Whether a layer draws random numbers; recurrent layers have a generator even without dropout."""
    if getattr(layer, "seed_generator", None) is None:
        return False
    rates = [getattr(layer, name) for name in _RATES if hasattr(layer, name)]
    return not rates or any(rates)


def _is_stateful(model: keras.Model) -> bool:
    """Whether a layer keeps its state from batch to batch, each of the same size."""
    return any(getattr(layer, "stateful", False) is True for layer in all_layers(model))


def has_parts(model: keras.Model) -> bool:
    """Whether rematerialization would save memory; takes some tenths of a second for a large model."""
    try:
        return divide(model).count > 0
    except Exception:  # noqa: BLE001 (a user's layers may do anything)
        return False
