"""Lets a run that is out of memory train on with less: from its last checkpoint, with the same batch and schedule.

A failed step may have updated some of the weights and random states, as TensorFlow runs what does not depend on each
other in any order. So training continues from a checkpoint, or from the start.
"""

import os
import re
import traceback
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras

from accel_engine.devices.cuda_visible_devices import gpu_variables
from accel_engine.errors import ModelError, PlanError
from accel_engine.events import OUT_OF_MEMORY
from accel_engine.keras_support.divisibility import why_indivisible
from accel_engine.keras_support.losses import is_keras_defined, is_mean
from accel_engine.keras_support.model_structure import walk
from accel_engine.plan import Plan
from accel_engine.plan.memory_remedies import MemoryFacts, MemoryRepair, next_repair
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.keras_names import all_layers
from accel_engine.run.directory import checkpoint_files
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.run.writing.writer import RunWriter
from accel_engine.training.autotuning.mode_choice import alternative_mode, plan_mode
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.feed import CachedFeed, choose_feed
from accel_engine.training.core.rematerialization.division import divide_model
from accel_engine.training.optimizer_state import has_state
from accel_engine.training.recovery.recovery_action import RecoveryAction
from accel_engine.training.reporting.error_explanation import allocated, is_of_host, is_out_of_memory

_MIN_CACHED_BYTES = 1 << 24
"""Bytes of cached training data from which it is worthwhile to stream it instead."""

_BATCH_LAYERS = {"BatchNormalization": "batch normalization", "SpectralNormalization": "spectral normalization"}
"""Keras' layers whose state or outputs depend on the whole batch."""

_RATES = ("rate", "dropout", "recurrent_dropout", "stddev")
"""Attributes of Keras' random layers that are 0 if they draw nothing."""


class OutOfMemory:
    """Finds the repairs of a run that is out of memory, one after the other.

    Args:
        run: The run.
        is_remat_tried: Whether another process has chosen rematerialization, which may turn out to be impossible.
    """

    def __init__(self, run: RunWriter, *, is_remat_tried: bool = False) -> None:
        self._run = run
        self._facts: MemoryFacts | None = None
        self._model: weakref.ref[keras.Model] | None = None  # so that it can be released
        self._remat_before = "auto" if is_remat_tried else ""
        self._cannot_recompute = False

    def note(self, assembly: Assembly) -> None:
        """Take note of what is trained, and write it for a process that starts a killed run again."""
        facts, self._model = memory_facts(assembly), weakref.ref(assembly.model)
        if facts != self._facts:
            self._run.write_memory_facts(facts)
        self._facts = facts

    def repair(
        self, error: BaseException, resolved: ResolvedPlan, step: int, *, compiled: bool = False
    ) -> RecoveryAction | None:
        """The repair of a run that is out of memory; ``None`` if it is not, or if nothing is left to do.

        Args:
            error: What training raised.
            resolved: The plan that was trained.
            step: Steps taken.
            compiled: Whether another execution mode was compiled beside the training.
        """
        plan, before = resolved.plan, {}
        if plan.on_oom == "fail" or resolved.strategy.processes:  # one of several workers cannot change the plan
            return None
        if self._remat_before and _is_unrepeatable(error):
            self._cannot_recompute = True
            before = {"remat": self._remat_before}
        elif not is_out_of_memory(error):
            return None
        found = self._next_repair(plan.replace(**before), error, resolved, compiled=compiled)
        self._remat_before = plan.remat if found and "remat" in found.changes else ""
        if found is None:
            return None
        return RecoveryAction(
            OUT_OF_MEMORY,
            _reason(error, step) if not before else f"rematerialization is impossible: {error}",
            f"the run {found.action}",
            _newest_whole(self._run.directory, step),
            {**before, **found.changes},
            streams_data=found.streams_data,
            needs_process=self._facts is not None and self._facts.on_host and not found.streams_data,
        )

    def _next_repair(
        self, plan: Plan, error: BaseException, resolved: ResolvedPlan, *, compiled: bool
    ) -> MemoryRepair | None:
        facts = self._facts
        if facts is None:  # before the model was assembled
            caches = not resolved.streams_data and _failed_in(error, choose_feed.__name__)
            return next_repair(plan, MemoryFacts(batch=0, caches_data=caches))
        if not facts.on_host and is_of_host(error):  # smaller steps take less of the accelerator's memory only
            return None
        model = self._model() if self._model else None
        can_recompute = facts.can_recompute and not self._cannot_recompute and (model is None or has_parts(model))
        return next_repair(plan, replace(facts, can_recompute=can_recompute, tries_xla=facts.tries_xla and compiled))


def _newest_whole(directory: Path, limit: int) -> int:
    """The step of the newest whole checkpoint of a run, up to a step; 0 if there is none."""
    folder = directory / CHECKPOINTS
    steps = [step for step in checkpoint_files.steps_in(folder) if step <= limit]
    return next((step for step in reversed(steps) if not checkpoint_files.find_damage(folder, step)), 0)


def _reason(error: BaseException, step: int) -> str:
    what = allocated(error)
    return f"out of memory after step {step:,}" + (f", allocating {what}" if what else "")


def _is_unrepeatable(error: BaseException) -> bool:
    """Whether a model cannot be trained with rematerialization, as it computes something that cannot be repeated."""
    if isinstance(error, PlanError):
        return error.field == "remat"
    return isinstance(error, ModelError) and str(error).startswith("rematerialization")


def _failed_in(error: BaseException, function: str) -> bool:
    return any(frame.f_code.co_name == function for frame, _ in traceback.walk_tb(error.__traceback__))


def memory_facts(assembly: Assembly) -> MemoryFacts:
    """The facts that decide which remedies a training has that runs out of memory."""
    model, custom_step = assembly.model, assembly.has_custom_train_step
    can_split = not custom_step and is_mean(model.loss) and not why_indivisible(model) and not _is_stateful(model)
    data = assembly.dataset.train
    caches = isinstance(assembly.feed, CachedFeed) and getattr(data, "nbytes", 0) >= _MIN_CACHED_BYTES
    alternative = alternative_mode(assembly, plan_mode(assembly))
    return MemoryFacts(
        batch=assembly.step_counts.per_replica_batch,
        can_split=can_split,
        splitting_changes=splitting_changes(model) if can_split else (),
        can_recompute=not custom_step and not assembly.coordinated,
        micro_batches=assembly.stages.micro_batches if assembly.stages else 1,
        caches_data=caches,
        tries_xla=alternative is not None and alternative.xla,
        can_place_state=not custom_step and has_state(model.optimizer),
        on_host=assembly.on_cpu,
        variables=gpu_variables(os.environ),
    )


def splitting_changes(model: keras.Model) -> tuple[str, ...]:
    """Differences of a step in micro-batches, besides the rounding of sums; empty if there are none."""
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
        return divide_model(model).count > 0
    except Exception:  # noqa: BLE001 (a user's layers may do anything)
        return False
