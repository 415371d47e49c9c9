"""Finds the step, the batch and the layer with which a loss or weights became not a number, or a loss exploded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.errors import format_error
from accel_engine.keras_support.model_structure import override_calls, walk
from accel_engine.models.model_call import call_model
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.float16_range import LARGEST
from accel_engine.training.core.metric_states import compute_loss, mean_loss
from accel_engine.training.recovery.batch_at_fault import BatchAtFault, describe_batch
from accel_engine.training.recovery.loss_watch import LossTrouble
from accel_engine.training.recovery.replay import Replay, ReplayEnded

_INPUTS = "the inputs of the model are not finite"
"""What is found if they are not finite as the model gets them, scaled and augmented."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of values that are not finite, as far as it was found."""

    step: int | None = None
    """The step at fault, counted from 0; ``None`` if it is unknown."""
    first: str = ""
    """The first value that is not finite, in words; empty if unknown."""
    unknown: str = ""
    """Why not all could be found; empty if it could."""
    batch: str = ""
    """The faults of the batch of the step, in words; empty without any."""
    examples: str = ""
    """The examples at fault, or all of the batch, in words."""
    file: str = ""
    """The file in the run's directory with the batch; empty if it could not be kept."""

    @property
    def text(self) -> str:
        """The cause in one line, for the user."""
        found = [self.first] if self.first and not (self.batch and self.first == _INPUTS) else []
        if self.batch:
            found.append(f"{self.batch} ({self.examples})")
        elif self.examples:
            found.append(f"the batch of step {self.step:,} has {self.examples}")
        if self.file:
            found.append(f"the batch is in {self.file} in the run's directory")
        if self.unknown:
            found.append(f"more is unknown: {self.unknown}")
        return "; ".join(found)


def find_cause(
    trouble: LossTrouble,
    assemble_again: Callable[[], Assembly],
    directory: Path,
    first: int,
    interrupted: Callable[[], bool],
) -> Cause:
    """Take the steps since a checkpoint again, and look for the cause of a trouble.

    Args:
        trouble: What was seen.
        assemble_again: Assembles the run, without restoring a checkpoint.
        directory: The run's directory.
        first: The step of the checkpoint; 0 for the start.
        interrupted: Whether to end the search.
    """

    def replayed() -> tuple[Assembly, Replay]:
        assembly = assemble_again()
        return assembly, Replay(assembly, directory, first, interrupted)

    try:
        # A loss that is not finite comes from its own step, or from the update of the step before.
        steps = sorted({max(first, trouble.step - 1), max(first, trouble.step)})
        return _Search(trouble, directory, *replayed()).find_in(steps)
    except _NotFiniteBefore:
        pass
    except Exception as error:  # noqa: BLE001 (the search must not hide what was seen)
        return _unknown(error)
    try:
        # Some layers turn NaN to 0, so that losses stay finite for long.
        start, end = replayed()[1].failing_chunk(trouble.step)
        return _Search(trouble, directory, *replayed()).find_in(range(start, end + 1))
    except Exception as error:  # noqa: BLE001 (see above)
        return _unknown(error)


def _unknown(error: Exception) -> Cause:
    if isinstance(error, ReplayEnded):
        return Cause(unknown=str(error))
    return Cause(unknown=f"the steps could not be taken again: {format_error(error)}")


class _NotFiniteBefore(Exception):  # noqa: N818 (an answer, not an error)
    """Weights were not finite before the first step that was looked at."""

    def __str__(self) -> str:
        return "weights were not finite before"


class _Search:
    """Looks for a cause in some steps."""

    def __init__(self, trouble: LossTrouble, directory: Path, assembly: Assembly, replay: Replay) -> None:
        self._trouble, self._directory = trouble, directory
        self._assembly, self._replay = assembly, replay
        self._checked = _CheckedStep(assembly)

    def find_in(self, steps: Sequence[int]) -> Cause:
        """The cause, in one of some steps that follow each other.

        Raises:
            ReplayEnded: The steps could not be taken again.
            _NotFiniteBefore: Weights were not finite before the first step.
        """
        before: BatchAtFault | None = None
        for batch, rows in self._replay.batches_before(steps):
            if weight := self._replay.not_finite():
                return self._by_update(before, weight)
            seen = describe_batch(self._replay.step, batch, rows, self._assembly.dataset)
            found = self._checked.first_not_finite(batch)
            explodes = self._trouble.explodes and self._replay.step < self._trouble.step
            if found or seen.text or explodes:
                return self._cause(seen, found, self._checked.reason)
            before = seen
        if weight := self._replay.not_finite():  # after the last step of the run
            return self._by_update(before, weight)
        if before is not None and self._checked.reason:
            return self._cause(before, "", self._checked.reason)
        return Cause(unknown="the same steps, taken again from the checkpoint, gave values that are finite")

    def _by_update(self, batch: BatchAtFault | None, weight: str) -> Cause:
        if batch is None:
            raise _NotFiniteBefore
        return self._cause(batch, f"the update of step {batch.step:,} makes {weight} not finite", "")

    def _cause(self, batch: BatchAtFault, first: str, unknown: str) -> Cause:
        try:
            file = batch.save(self._directory)
        except OSError as error:
            file, unknown = "", "; ".join(filter(None, (unknown, f"the batch could not be kept: {error.strerror}")))
        return Cause(batch.step, first, unknown, batch.text, batch.named(self._assembly.dataset), file)


class _CheckedStep:
    """Computes steps of an assembly, layer by layer, without changing its weights.

    The statistics of batch normalization and the state of random layers change.

    Args:
        assembly: Model, data and strategy.

    Attributes:
        reason: Why it cannot be done; empty if it can.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self.reason = ""
        if assembly.has_custom_train_step:
            self.reason = "the model has a custom train_step"
        elif assembly.on_tpu:
            self.reason = "a TPU runs whole steps only"

    def first_not_finite(self, raw: Batch) -> str:
        """The first value that is not finite, in words; empty if all are finite, or if :attr:`reason` is set.

        Args:
            raw: The examples of the step on all replicas, NumPy arrays ``[examples, ...]``.
        """
        if self.reason:
            return ""
        found: list[str] = []
        batch = map_structure(tf.convert_to_tensor, raw)
        try:
            self._assembly.strategy.run(lambda: self._run(batch, found))
        except Exception as error:  # noqa: BLE001 (a user's layer may need a graph, and memory may be short)
            self.reason = f"the step could not be computed layer by layer: {format_error(error)}"
        return found[0] if found else ""

    def _run(self, raw: Batch, found: list[str]) -> None:
        """Append values that are not finite to a list, in the order in which they are computed."""
        model = self._assembly.model
        batch = self._assembly.prepare_training(raw)
        if any(not _is_finite(each) for each in flatten(batch.inputs)):
            found.append(_INPUTS)
        layers = {layer: _checking(layer, found) for layer, _ in walk(model) if not isinstance(layer, keras.Model)}
        with tf.GradientTape() as tape:
            with override_calls(layers):
                outputs = call_model(model, batch.inputs, training=True)
            loss = mean_loss(compute_loss(model, batch, outputs, training=True))
        if not _is_finite(loss):
            found.append("the loss is not finite, although the outputs of all layers are")
        gradients = tape.gradient(loss, model.trainable_variables)
        for variable, gradient in reversed(list(zip(model.trainable_variables, gradients, strict=True))):
            if gradient is not None and not _is_finite(tf.convert_to_tensor(gradient)):
                found.append(f"the gradient of {variable.path} is not finite first, although the loss is finite")


def _checking(layer: Any, found: list[str]) -> Callable[..., Any]:
    call = layer.call

    def checking(*inputs: Any, **options: Any) -> Any:
        outputs = call(*inputs, **options)
        for each in keras.tree.flatten(outputs):
            if not _is_finite(each):
                limit = f" in float16, which ends at {LARGEST:,}" if each.dtype == tf.float16 else ""
                found.append(f"the output of layer {layer.name} ({type(layer).__name__}) is not finite first{limit}")
                break
        return outputs

    return checking


def _is_finite(value: Any) -> bool:
    """Whether all values of a tensor are finite; true for those that are not floats."""
    if not tf.is_tensor(value) or not value.dtype.is_floating:
        return True
    return bool(tf.reduce_all(tf.math.is_finite(value)))
