"""Checks that a checkpoint is whole before it is restored, so that an error while restoring means another model."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from accel_engine.errors import RunError
from accel_engine.run.checkpoint_files import checkpoint_path, damage, damaged_message, has_checksums, steps_in
from accel_engine.user_code import one_line


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
        RunError: Restoring it failed: it belongs to another model.
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
    except (AssertionError, LookupError, ValueError, tf.errors.OpError) as error:
        reason = one_line(str(error).partition("\n")[0])
        raise RunError(f"the checkpoint of step {step:,} does not fit the model: {reason}") from error


def _is_readable(path: str) -> bool:
    """Whether TensorFlow can read all values, each of which has a checksum of TensorFlow's own."""
    try:
        values = tf.train.load_checkpoint(path)
        for name in values.get_variable_to_shape_map():
            values.get_tensor(name)
    except Exception:  # noqa: BLE001 (TensorFlow raises several types, among them IndexError and UnicodeDecodeError)
        return False
    return True
