"""Checks that a checkpoint is whole, and reads its weights, without the state of optimizers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import keras
import tensorflow as tf

from accel_engine.errors import RunError
from accel_engine.run.directory import checkpoint_files
from accel_engine.user_code import one_line

AVERAGES = "averages"
"""The part of a checkpoint with the moving averages of weights, by the index of each weight in the model."""

UNTRACKED = "untracked"
"""The part with the weights that ``tf.train.Checkpoint`` does not find, by their index."""


def untracked_weights(model: keras.Model) -> dict[str, tf.Variable]:
    """The weights that ``tf.train.Checkpoint`` does not find in a model, by index: the weights of layers in lists.

    It finds the trainable ones through the optimizer only, and batch normalization's statistics not at all.
    """
    tracked = _without_optimizers(model)  # named, as a TrackableView keeps no object alive
    found = {id(each) for each in tf.train.TrackableView(tracked).descendants()}
    return {
        str(index): weight.value
        for index, weight in enumerate(model.weights)
        if id(weight) not in found and id(weight.value) not in found
    }


def restore_weights(
    model: keras.Model, path: str, options: tf.train.CheckpointOptions | None = None, *, averages: bool = False
) -> None:
    """Give a model the weights of a checkpoint; optimizers and metrics keep their state.

    Args:
        model: The model, built.
        path: The checkpoint.
        options: How it is read.
        averages: Whether weights get their moving averages instead, where the checkpoint has these.

    Raises:
        AssertionError: The checkpoint lacks a weight.
        ValueError: A weight has another shape, or the model has fewer weights with averages.
        OpError: The checkpoint cannot be read.
    """
    parts = {"model": _without_optimizers(model), UNTRACKED: untracked_weights(model)}
    _restore({name: part for name, part in parts.items() if part}, path, options)
    if averages and (indices := _averaged(path)):
        values = {str(index): weight.value for index, weight in enumerate(model.weights) if str(index) in indices}
        if len(values) < len(indices):
            raise ValueError("it has moving averages of more weights than the model has")
        _restore({AVERAGES: values}, path, options)


def has_averages(path: str) -> bool:
    """Whether a checkpoint has moving averages.

    Raises:
        OpError: The checkpoint cannot be read.
    """
    return bool(_averaged(path))


def _averaged(path: str) -> set[str]:
    names: Sequence[tuple[str, list[int]]] = tf.train.list_variables(path)
    return {name.split("/")[1] for name, _ in names if name.startswith(f"{AVERAGES}/")}


def _restore(parts: dict[str, object], path: str, options: tf.train.CheckpointOptions | None) -> None:
    tf.train.Checkpoint(**parts).read(path, options).expect_partial().assert_existing_objects_matched()


def _without_optimizers(model: keras.Model) -> tf.train.Checkpoint:
    """A model's parts in a checkpoint but for optimizers and metrics, under the same names."""
    parts = tf.train.Checkpoint()
    for name, child in tf.train.TrackableView.children(model).items():
        if not isinstance(child, keras.Optimizer | keras.Metric):
            setattr(parts, name, child)
    return parts


_OF_ANOTHER_MODEL = (
    AssertionError,
    LookupError,
    ValueError,
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
)
"""What TensorFlow raises if a checkpoint lacks a variable, or has it in another shape or type."""


class DamagedCheckpointError(RunError):
    """A checkpoint whose files are not as they were written, or whose values are not finite."""


@contextmanager
def whole_checkpoint(folder: Path, step: int) -> Iterator[str]:
    """Check that a checkpoint is whole, and yield its path; an error of restoring from it becomes a ``RunError``.

    Args:
        folder: The run's directory of checkpoints.
        step: The checkpoint's step.

    Raises:
        DamagedCheckpointError: The checkpoint is damaged or incomplete.
        RunError: Restoring it failed: it belongs to another model, or there is too little memory, for example.
    """
    path = str(checkpoint_files.checkpoint_path(folder, step))
    problem = ""
    if step not in checkpoint_files.steps_in(folder):
        problem = "its files are missing"
    elif checkpoint_files.has_checksums(folder, step):
        problem = checkpoint_files.find_damage(folder, step)
    elif not _is_readable(path):
        problem = "TensorFlow cannot read its files"
    if problem:
        raise DamagedCheckpointError(checkpoint_files.damaged_message(step, problem))
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
