"""Checkpoints: everything that is needed to go on as if nothing had happened.

The weights, the optimizer's state with its learning rate, the state of random numbers and the number
of steps taken. The order of examples needs no room: it follows from the seed and the step (see
:mod:`accel_engine.training.feed`), as long as the data becomes steps as it did.
"""

import math
from pathlib import Path

import tensorflow as tf

from accel_engine.errors import RunError
from accel_engine.run.paths import CHECKPOINTS
from accel_engine.training.assembly import Assembly, rate_factor

KEEP = 3
"""Checkpoints kept of a run; older ones are deleted."""


class Checkpoints:
    """The checkpoints of one run.

    Args:
        assembly: What is saved and restored.
        directory: The run's.
    """

    def __init__(self, assembly: Assembly, directory: Path) -> None:
        self._assembly = assembly
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._layout = tf.Variable(_layout(assembly), dtype=tf.int64, trainable=False)
        rate = assembly.plan.learning_rate
        self._planned_rate = tf.Variable(math.nan if rate is None else rate, dtype=tf.float64, trainable=False)
        model = assembly.model
        weights = {id(variable) for variable in model.weights}
        self._parts = {
            "model": model,
            "optimizer": model.optimizer,
            # Keras counts the state of random layers among a model's variables, TensorFlow does not find it.
            "randomness": [variable.value for variable in model.variables if id(variable) not in weights],
            "unseeded": [variable.value for variable in assembly.unseeded],
            "step": self._step,
            "layout": self._layout,
            "planned_rate": self._planned_rate,
        }
        # Other machines, a TPU's host or parameter servers, would write to disks of their own.
        here = "/job:localhost" if assembly.on_tpu else "/job:chief" if assembly.coordinated else None
        self._options = tf.train.CheckpointOptions(here)
        self._directory = directory / CHECKPOINTS
        self._manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(**self._parts), str(self._directory), max_to_keep=KEEP, checkpoint_name="step"
        )

    def save(self, step: int) -> str:
        """Write a checkpoint after ``step`` steps; tell its path relative to the run's directory."""
        self._step.assign(step)
        self._manager.save(checkpoint_number=step, options=self._options)
        return f"{CHECKPOINTS}/step-{step}"

    def restore(self, step: int) -> None:
        """Read the checkpoint of a step.

        The learning rate is the checkpoint's, which somebody may have set while training, unless the
        plan names another than it did then.

        Raises:
            RunError: It cannot be read, or fits neither the model nor the data, which have changed since.
        """
        try:
            path = str(self._directory / f"step-{step}")
            written = {name.split("/")[0] for name, _ in tf.train.list_variables(path)}
            parts = {name: part for name, part in self._parts.items() if name != "unseeded" or name in written}
            restored = tf.train.Checkpoint(**parts).restore(path, self._options)
            restored.assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise RunError(f"the checkpoint of step {step} is damaged or does not fit the model: {error}") from error
        before, now = tuple(self._layout.numpy().tolist()), _layout(self._assembly)
        if before != now:
            raise RunError(
                f"the checkpoint of step {step} does not fit the data and the replicas: an epoch was "
                f"{_in_words(*before)}, and would now be {_in_words(*now)}"
            )
        rate = self._assembly.plan.learning_rate
        if rate is not None and rate != float(self._planned_rate):
            factor = rate_factor(self._assembly.plan, self._assembly.replicas)
            self._assembly.model.optimizer.learning_rate = rate * factor
            self._planned_rate.assign(rate)


def _layout(assembly: Assembly) -> tuple[int, int, int]:
    """What must stay as it is, so that a step's number tells its epoch and its examples."""
    schedule = assembly.schedule
    return len(assembly.dataset.train), schedule.steps_per_epoch, schedule.global_batch


def _in_words(examples: int, steps: int, batch: int) -> str:
    return f"{steps} steps of {batch} out of {examples} examples"
