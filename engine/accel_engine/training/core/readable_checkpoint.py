"""Checks that a checkpoint is whole before it is restored, and explains errors while restoring it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from accel_engine.errors import RunError
from accel_engine.run.directory.checkpoint_files import (
    checkpoint_path,
    damage,
    damaged_message,
    has_checksums,
    steps_in,
)
from accel_engine.user_code import one_line

_OF_ANOTHER_MODEL = (
    AssertionError,
    LookupError,
    ValueError,
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
)
"""What restoring raises for variables that are missing, or have another shape or type."""


class DamagedCheckpointError(RunError):
    """A checkpoint whose files are not as they were written, or whose values are not finite."""


@contextmanager
def reading(folder: Path, step: int) -> Iterator[str]:
    """Check a checkpoint, and yield its path, to restore it from.

    Args:
        folder: The run's directory of checkpoints.
        step: The checkpoint's step.

    Raises:
        DamagedCheckpointError: It is damaged.
        RunError: Restoring it failed: it belongs to another model, or there is too little memory, for example.
    """
    path = str(checkpoint_path(folder, step))
    problem = ""
    if step not in steps_in(folder):
        problem = "its files are missing"
    elif has_checksums(folder, step):
        problem = damage(folder, step)
    elif not _is_readable(path):
        problem = "TensorFlow cannot read its files"
    if problem:
        raise DamagedCheckpointError(damaged_message(step, problem))
    try:
        yield path
    except _OF_ANOTHER_MODEL as error:
        raise RunError(f"the checkpoint of step {step:,} does not fit the model: {_reason(error)}") from error
    except tf.errors.OpError as error:
        raise RunError(f"cannot restore the checkpoint of step {step:,}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return one_line(str(error).partition("\n")[0])


def _is_readable(path: str) -> bool:
    """Whether TensorFlow can read all values, each of which has a checksum of TensorFlow's own."""
    try:
        values = tf.train.load_checkpoint(path)
        for name in values.get_variable_to_shape_map():
            values.get_tensor(name)
    except Exception:  # noqa: BLE001 (TensorFlow raises several types, among them IndexError and UnicodeDecodeError)
        return False
    return True
