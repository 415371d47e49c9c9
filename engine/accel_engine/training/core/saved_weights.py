"""Reads the weights of a checkpoint, without the state of optimizers."""

from collections.abc import Sequence

import keras
import tensorflow as tf

AVERAGES = "averages"
"""The part of a checkpoint with moving averages, by the index of their weights."""

UNTRACKED = "untracked"
"""The part with the weights that ``tf.train.Checkpoint`` does not find, by their index."""


def untracked_weights(model: keras.Model) -> dict[str, tf.Variable]:
    """The weights that ``tf.train.Checkpoint`` does not find in a model, by index: those of layers in lists.

    It finds the trainable ones through the optimizer only, and batch normalization's statistics not at all.
    """
    tracked = _without_optimizers(model)  # a view has a weak reference to it
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
        model: Built.
        path: The checkpoint.
        options: How it is read.
        averages: Whether weights with a moving average get that instead.

    Raises:
        AssertionError: It does not have all of them.
        ValueError: One has another shape.
        OpError: It cannot be read.
    """
    parts = {"model": _without_optimizers(model), UNTRACKED: untracked_weights(model)}
    _restore({name: part for name, part in parts.items() if part}, path, options)
    if averages and (indices := _averaged(path)):
        values = {str(index): weight.value for index, weight in enumerate(model.weights) if str(index) in indices}
        if len(values) < len(indices):
            raise ValueError("it has moving averages of more weights")
        _restore({AVERAGES: values}, path, options)


def has_averages(path: str) -> bool:
    """Whether a checkpoint has moving averages.

    Raises:
        OpError: It cannot be read.
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
