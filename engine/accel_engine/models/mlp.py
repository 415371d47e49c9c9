"""A multilayer perceptron: one hidden layer of 128 units."""

from collections.abc import Sequence

import keras
from keras import layers


def build(
    input_shape: tuple[int, ...],
    classes: int,
    activation: str = "softmax",
    mean: Sequence[float] = (),
    variance: Sequence[float] = (),
) -> keras.Model:
    """Build the model for examples of any shape: 101,770 weights for 28x28 images in 10 classes.

    Args:
        input_shape: Shape of one example, without the batch.
        classes: Number of classes, or of values to predict.
        activation: Activation of the output: ``linear`` for numbers, ``sigmoid`` for several labels.
        mean: Means of the values to predict, which are learned as differences from them in standard deviations.
        variance: Their variances.

    Returns:
        An uncompiled model from examples to outputs, float32 ``[batch, classes]``.
    """
    model = keras.Sequential(
        [
            keras.Input(input_shape),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(classes, activation=activation, dtype="float32"),
        ],
        name="mlp",
    )
    if mean:
        model.add(layers.Normalization(mean=list(mean), variance=list(variance), invert=True, dtype="float32"))
    return model
