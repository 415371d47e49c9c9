"""Checkpoints: everything that is needed to go on as if nothing had happened.

The weights, the optimizer's state, the state of random layers and the number of steps taken. The
order of examples needs none: it follows from the seed and the step (see :mod:`accel_engine.training.feed`).
"""

from pathlib import Path

import tensorflow as tf

from accel_engine.errors import RunError
from accel_engine.run.home import CHECKPOINTS
from accel_engine.training.assembly import Assembly

KEEP = 3
"""Checkpoints kept of a run; older ones are deleted."""


class Checkpoints:
    """The checkpoints of one run.

    Args:
        assembly: What is saved and restored.
        directory: The run's.
    """

    def __init__(self, assembly: Assembly, directory: Path) -> None:
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
        model = assembly.model
        weights = {id(variable) for variable in model.weights}
        self._checkpoint = tf.train.Checkpoint(
            model=model,
            optimizer=model.optimizer,
            # Keras counts the state of random layers among a model's variables, TensorFlow does not find it.
            randomness=[variable.value for variable in model.variables if id(variable) not in weights],
            step=self._step,
        )
        self._directory = directory / CHECKPOINTS
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, str(self._directory), max_to_keep=KEEP, checkpoint_name="step"
        )

    def save(self, step: int) -> str:
        """Write a checkpoint after ``step`` steps; tell its path relative to the run's directory."""
        self._step.assign(step)
        self._manager.save(checkpoint_number=step)
        return f"{CHECKPOINTS}/step-{step}"

    def restore(self, step: int) -> None:
        """Read the checkpoint of a step.

        Raises:
            RunError: It does not fit the model, as when the user's model has changed since.
        """
        try:
            self._checkpoint.restore(str(self._directory / f"step-{step}")).assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise RunError(f"the checkpoint of step {step} does not fit the model: {error}") from error
