"""Saves and restores checkpoints, from which a run continues exactly where it stopped.

A checkpoint holds the weights, the optimizer's state with its learning rate, the random state and the number of
steps. The order of examples is not saved: it follows from the seed and the step (see
:mod:`accel_engine.training.core.epoch_order`), as long as batches and steps per epoch stay the same. Of a stream, the
position that was consumed is saved.
"""

import math
from collections.abc import Iterable
from pathlib import Path

import keras
import tensorflow as tf

from accel_engine.data.dataset import Split
from accel_engine.errors import RunError
from accel_engine.run.run_paths import CHECKPOINTS, checkpoint_steps
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.batches import Batches
from accel_engine.training.core.recipe.optimizer import rate_factor
from accel_engine.training.core.replica_statistics import ReplicaStatistics
from accel_engine.training.core.saved_weights import AVERAGES, UNTRACKED, restore_weights, untracked_weights

_NEWER = ("unseeded", "position", AVERAGES, UNTRACKED, "augmentation")
"""Parts that checkpoints of earlier versions do not have."""


class Checkpoints:
    """The checkpoints of one run.

    Args:
        assembly: The model and optimizer to save and restore.
        directory: The run's directory.
        batches: The position in the data.
    """

    def __init__(self, assembly: Assembly, directory: Path, batches: Batches) -> None:
        self._assembly = assembly
        self._batches = batches
        self._statistics = ReplicaStatistics(assembly)
        self._position = tf.Variable(batches.position, dtype=tf.int64, trainable=False)
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._epoch_layout = tf.Variable(_epoch_layout(assembly), dtype=tf.int64, trainable=False)
        rate = assembly.plan.learning_rate
        self._planned_rate = tf.Variable(math.nan if rate is None else rate, dtype=tf.float64, trainable=False)
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
            "position": self._position,
        }
        # Remote devices (a TPU's host, parameter servers) would write to their own disks.
        here = "/job:localhost" if assembly.on_tpu else "/job:chief" if assembly.coordinated else None
        self._options = tf.train.CheckpointOptions(here)
        self._directory = directory / CHECKPOINTS
        self._checkpoint = tf.train.Checkpoint(**self._parts)

    @property
    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in increasing order."""
        return checkpoint_steps(self._directory.parent)

    def save(self, step: int) -> str:
        """Write the checkpoint of a step; returns its path relative to the run's directory."""
        self._statistics.share()
        self._step.assign(step)
        self._position.assign(self._batches.position)
        self._checkpoint.write(str(self._directory / f"step-{step}"), self._options)
        return f"{CHECKPOINTS}/step-{step}"

    def prune(self, best: int | None) -> None:
        """Delete all checkpoints but the newest ones, as many as the plan keeps, and the one of the best step.

        Several workers keep two, as one of them may be killed before it has saved the newest one.
        """
        cluster = self._assembly.cluster
        shared = cluster is not None and not cluster.coordinated
        newest = max(self._assembly.plan.keep_checkpoints, 2 if shared else 1)
        self._delete({*self.steps[:-newest]} - {best})

    def delete_after(self, step: int) -> None:
        """Delete the checkpoints after a step, from which training continues."""
        self._delete({each for each in self.steps if each > step})

    def _delete(self, steps: Iterable[int]) -> None:
        for step in steps:
            for file in (*self._directory.glob(f"step-{step}.data-*"), self._directory / f"step-{step}.index"):
                file.unlink(missing_ok=True)

    def restore_weights(self, step: int) -> None:
        """Restore the weights of a step and their moving averages, but no other state of the optimizer.

        Raises:
            RunError: They cannot be read.
        """
        path = str(self._directory / f"step-{step}")
        try:
            restore_weights(self._assembly.model, path, self._options)
            status = tf.train.Checkpoint(**{AVERAGES: self._parts[AVERAGES]}).read(path, self._options)
            status.expect_partial().assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise RunError(f"the checkpoint of step {step} cannot be read: {error}") from error

    def restore(self, step: int) -> None:
        """Restore the checkpoint of a step.

        The learning rate is the checkpoint's, which may have been set during training, unless the plan's has changed
        since.

        Raises:
            RunError: It cannot be read, or the model or the data have changed since.
        """
        try:
            path = str(self._directory / f"step-{step}")
            written = {name.split("/")[0] for name, _ in tf.train.list_variables(path)}
            parts = {name: part for name, part in self._parts.items() if name not in _NEWER or name in written}
            restored = tf.train.Checkpoint(**parts).read(path, self._options)
            restored.assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise RunError(f"the checkpoint of step {step} is damaged or does not fit the model: {error}") from error
        weights = self._assembly.model.weights
        if UNTRACKED not in written and not all(weights[int(index)].trainable for index in self._parts[UNTRACKED]):
            raise RunError(
                f"the checkpoint of step {step} is of an earlier version, which saved no statistics and frozen weights "
                "of layers in lists: start a new run"
            )
        before, now = tuple(self._epoch_layout.numpy().tolist()), _epoch_layout(self._assembly)
        if before != now:
            raise RunError(
                f"the checkpoint of step {step} does not match the data or the number of replicas: an epoch was "
                f"{_layout_text(*before)} and is now {_layout_text(*now)}"
            )
        self._batches.position = self._position.numpy().tolist()
        rate = self._assembly.plan.learning_rate
        if rate is not None and rate != float(self._planned_rate) and self._assembly.has_constant_rate:
            factor = rate_factor(self._assembly.plan, self._assembly.replicas)
            self._assembly.model.optimizer.learning_rate = rate * factor
            self._planned_rate.assign(rate)


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
