"""A multilayer perceptron: one hidden layer of 128 units."""

import keras
from keras import layers


def build(input_shape: tuple[int, ...], classes: int) -> keras.Model:
    """Build the model for examples of any shape: 101,770 weights for 28x28 images in 10 classes.

    Args:
        input_shape: Shape of one example, without the batch.
        classes: Number of classes.

    Returns:
        An uncompiled model from examples to probabilities, float32 ``[batch, classes]``.
    """
    return keras.Sequential(
        [
            keras.Input(input_shape),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(classes, activation="softmax", dtype="float32"),
        ],
        name="mlp",
    )
