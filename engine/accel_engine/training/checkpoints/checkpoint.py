"""Saves and restores checkpoints, from which a run continues exactly where it stopped.

A checkpoint holds the weights, the optimizer's state with its learning rate, the random state and the number of
steps. The order of examples is not saved: it follows from the seed and the step (see
:mod:`accel_engine.training.core.batches`), as long as batches and steps per epoch stay the same. Of a stream, the
position that was consumed is saved.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from accel_engine.data.dataset import Split
from accel_engine.errors import RunError
from accel_engine.plan.changed_plan import scaling_factor
from accel_engine.run.directory import checkpoint_files
from accel_engine.run.directory.checkpoint_files import steps_in
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.batches import Batches
from accel_engine.training.core.metric_states import EpochStates
from accel_engine.training.core.moving_statistics import MovingStatistics
from accel_engine.training.core.recipe.rate_schedule import multiply_constant_rates
from accel_engine.training.core.saved_weights import (
    AVERAGES,
    UNTRACKED,
    DamagedCheckpointError,
    restore_weights,
    untracked_weights,
    whole_checkpoint,
)


class NotFiniteError(RunError):
    """Weights or optimizer state that are NaN or infinite, of which no checkpoint is saved.

    Args:
        variables: The variables that have such values.
        step: The step.
    """

    def __init__(self, variables: Sequence[keras.Variable], step: int) -> None:
        others = len(variables) - 1
        names = f"{variables[0].path} and {others:,} more are" if others else f"{variables[0].path} is"
        super().__init__(f"{names} not finite after step {step:,}")


class Checkpoints:
    """The checkpoints of one run.

    Args:
        assembly: The model and optimizer to save and restore.
        directory: The run's directory.
        batches: The position in the data.

    Attributes:
        unverified: Whether the checkpoint that was restored had checksums that could not be read.
        epoch_states: The metrics of the epoch so far.
    """

    def __init__(self, assembly: Assembly, directory: Path, batches: Batches) -> None:
        self._assembly = assembly
        self._batches = batches
        self._statistics = MovingStatistics(assembly)
        self._finiteness = Finiteness(assembly)
        self._position = tf.Variable(batches.position, dtype=tf.int64)
        self.epoch_states = EpochStates()
        self._states = tf.Variable(self.epoch_states.stored, shape=[None], dtype=tf.float64)
        self.unverified = False
        self._step = tf.Variable(0, dtype=tf.int64)
        self._epoch_layout = tf.Variable(_epoch_layout(assembly), dtype=tf.int64)
        rate = assembly.plan.learning_rate
        self._planned_rate = tf.Variable(math.nan if rate is None else rate, dtype=tf.float64)
        self._rate_factor = tf.Variable(assembly.plan.learning_rate_factor, dtype=tf.float64)
        model = assembly.model
        weights = {id(variable) for variable in model.weights}
        self._parts = {
            "model": model,
            UNTRACKED: untracked_weights(model),
            **({} if model.optimizer is None else {"optimizer": model.optimizer}),
            # Keras lists the state of random layers as model variables; tf.train.Checkpoint does not find it.
            "randomness": [variable.value for variable in model.variables if id(variable) not in weights],
            "unseeded": [variable.value for variable in assembly.unseeded],
            # The optimizer has them too: they are stored once, and can be restored without it.
            AVERAGES: {index: average.value for index, average in _indexed_averages(assembly)},
            "augmentation": [variable.value for variable in assembly.augmentation.states]
            if assembly.augmentation
            else [],
            "step": self._step,
            "layout": self._epoch_layout,
            "planned_rate": self._planned_rate,
            "rate_factor": self._rate_factor,
            "position": self._position,
            "epoch_states": self._states,
        }
        # Remote devices (a TPU's host, parameter servers) would write to their own disks.
        here = "/job:localhost" if assembly.on_tpu else "/job:chief" if assembly.coordinated else None
        self._options = tf.train.CheckpointOptions(here)
        self._directory = directory / CHECKPOINTS
        self._checkpoint = tf.train.Checkpoint(**self._parts)

    @property
    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in increasing order; some may be damaged."""
        return steps_in(self._directory)

    def not_finite(self) -> list[keras.Variable]:
        """The weights and variables of the optimizer with values that are NaN or infinite."""
        return self._finiteness.failures()

    def save(self, step: int, repeat: Callable[[Callable[[], None]], None] = lambda write: write()) -> str:
        """Write the checkpoint of a step, and last its checksums; returns its path relative to the run's directory.

        Args:
            step: The step.
            repeat: Calls a function that writes, again and again while the disk is full. What the workers do together
                is not repeated.

        Raises:
            NotFiniteError: A value is not finite, so that the checkpoint could not be continued from.
        """
        self._statistics.share()
        if variables := self.not_finite():
            raise NotFiniteError(variables, step)
        self._step.assign(step)
        self._position.assign(self._batches.position)
        self._states.assign(self.epoch_states.stored)
        repeat(partial(self._write, step))
        return f"{CHECKPOINTS}/step-{step}"

    def _write(self, step: int) -> None:
        with checkpoint_files.writing_checkpoint(self._directory, step) as path:
            self._checkpoint.write(str(path), self._options)

    def prune(self, best: int | None) -> None:
        """Delete all checkpoints but the newest ones, as many as the plan keeps, and the one of the best step.

        Several workers keep two, as one of them may be killed before it has saved the newest one.
        """
        cluster = self._assembly.cluster
        shared = cluster is not None and not cluster.coordinated
        newest = self._assembly.plan.keep_checkpoints
        checkpoint_files.prune(self._directory, max(newest, 2) if shared else newest, best)

    def delete_after(self, step: int) -> None:
        """Delete the checkpoints after a step, from which training continues, and leftovers of a killed engine."""
        checkpoint_files.delete_after(self._directory, step)

    def restore_weights(self, step: int) -> None:
        """Restore the weights of a step and their moving averages, but no other state of the optimizer.

        Raises:
            DamagedCheckpointError: The checkpoint is damaged.
            RunError: The checkpoint does not fit the model.
        """
        with whole_checkpoint(self._directory, step) as path:
            restore_weights(self._assembly.model, path, self._options)
            status = tf.train.Checkpoint(**{AVERAGES: self._parts[AVERAGES]}).read(path, self._options)
            status.expect_partial().assert_existing_objects_matched()

    def restore_first_weights(self, steps: Iterable[int]) -> int | None:
        """Restore the weights of the first of some steps whose checkpoint is whole.

        Args:
            steps: The preferred one first.

        Returns:
            Its step; ``None`` if all are damaged.
        """
        return checkpoint_files.first_whole(steps, partial(_try, self.restore_weights))[0]

    def damage_after(self, step: int) -> list[str]:
        """The faults of the damaged checkpoints after a step."""
        problems = {each: checkpoint_files.find_damage(self._directory, each) for each in self.steps if each > step}
        return [checkpoint_files.damaged_message(each, problem) for each, problem in problems.items() if problem]

    def restore_newest(self, limit: int) -> tuple[int, list[str]]:
        """Restore the newest whole checkpoint; returns its step, and what is wrong with newer ones.

        Args:
            limit: The newest step to consider.

        Raises:
            RunError: No checkpoint is whole; or the model or the data have changed since. Nothing is deleted.
        """
        steps = [step for step in reversed(self.steps) if step <= limit]
        step, problems = checkpoint_files.first_whole(steps, partial(_try, self.restore))
        if step is None:
            raise RunError(checkpoint_files.all_damaged_message(self._directory, problems))
        return step, problems

    def restore(self, step: int) -> None:
        """Restore the checkpoint of a step.

        The learning rate is the checkpoint's, which may have been set during training, unless the plan's has changed
        since.

        Raises:
            DamagedCheckpointError: The checkpoint is damaged, or has values that are not finite.
            RunError: The model or the data have changed since.
        """
        with whole_checkpoint(self._directory, step) as path:
            self._checkpoint.read(path, self._options).assert_existing_objects_matched()
        before, now = tuple(self._epoch_layout.numpy().tolist()), _epoch_layout(self._assembly)
        if before != now:
            raise RunError(
                f"the checkpoint of step {step} does not match the data or the number of replicas: an epoch was "
                f"{_layout_text(*before)} and is now {_layout_text(*now)}"
            )
        if not checkpoint_files.has_checksums(self._directory, step):  # its engine was killed before it wrote them
            self.unverified = checkpoint_files.has_garbage_checksums(self._directory, step)
            if variables := self.not_finite():
                problem = str(NotFiniteError(variables, step))
                raise DamagedCheckpointError(checkpoint_files.damaged_message(step, problem))
            with suppress(OSError):  # they can be written another time
                checkpoint_files.write_checksums(self._directory, step)
        self._batches.position = self._position.numpy().tolist()
        self.epoch_states.restore(self._states.numpy().tolist())
        self._restore_rate()

    def _restore_rate(self) -> None:
        """Change the learning rate of the checkpoint as far as the plan has changed since."""
        plan = self._assembly.plan
        rate, factor = plan.learning_rate, plan.learning_rate_factor
        if rate is not None and rate != float(self._planned_rate) and self._assembly.has_constant_rate:
            scaled = rate * scaling_factor(plan, self._assembly.replicas) * factor
            self._assembly.model.optimizer.learning_rate = scaled
            self._planned_rate.assign(rate)
        elif factor != float(self._rate_factor):
            multiply_constant_rates(self._assembly.model, factor / float(self._rate_factor))
        self._rate_factor.assign(factor)


def _try(restore: Callable[[int], None], step: int) -> str:
    """Restore a checkpoint; returns what is wrong if it is damaged, else an empty text."""
    try:
        restore(step)
    except DamagedCheckpointError as error:
        return str(error)
    return ""


def _indexed_averages(assembly: Assembly) -> list[tuple[str, keras.Variable]]:
    """The moving averages of a model's weights, with the index of the weight; empty without ``use_ema``."""
    indices = {id(variable): str(index) for index, variable in enumerate(assembly.model.weights)}
    return [(indices[id(variable)], average) for variable, average in assembly.averages]


def _epoch_layout(assembly: Assembly) -> tuple[int, int, int]:
    """Examples, steps per epoch and global batch, which must not change for a step number to keep its examples."""
    step_counts, train = assembly.step_counts, assembly.dataset.train
    examples = len(train) if isinstance(train, Split) else 0
    return examples, step_counts.steps_per_epoch, step_counts.global_batch


def _layout_text(examples: int, steps: int, batch: int) -> str:
    return f"{steps} steps of {batch} examples from {examples}"


_DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


class Finiteness:
    """Checks the weights of a model and the state of its optimizer, on the devices that they are on.

    A weight that is not trainable, such as a mask, may have been infinite from the start: it may stay so.

    Args:
        assembly: The model and optimizer, as they were built.
    """

    def __init__(self, assembly: Assembly) -> None:
        model = assembly.model
        state = model.optimizer.variables if model.optimizer is not None else ()
        every = {id(each): each for each in (*model.weights, *state)}.values()
        floats = [each for each in every if each.value.dtype in _DTYPES]
        frozen = {id(each) for each in model.weights if not each.trainable}
        self._variables = [each for each in floats if id(each) not in frozen or _finite([each])[0]]
        self._finite = tf.function(lambda: _finite(self._variables), autograph=False)

    def failures(self) -> list[keras.Variable]:
        """The variables with values that are not finite."""
        finite = np.asarray(self._finite()) if self._variables else ()
        return [each for each, is_finite in zip(self._variables, finite, strict=True) if not is_finite]


def _finite(variables: Sequence[keras.Variable]) -> tf.Tensor:
    """Whether all values of each variable are finite, bool ``[variables]``."""
    return tf.stack([tf.reduce_all(tf.math.is_finite(tf.convert_to_tensor(each.value))) for each in variables])
