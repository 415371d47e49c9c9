"""The CNN of the MNIST-1D paper (Greydanus and Kobak, 2020): three strided convolutions and a linear layer."""

from typing import Any


def cnn200(input_shape: tuple[int, ...], classes: int) -> Any:
    return _cnn(input_shape, classes, 200)


def cnn50(input_shape: tuple[int, ...], classes: int) -> Any:
    return _cnn(input_shape, classes, 50)


def cnn100(input_shape: tuple[int, ...], classes: int) -> Any:
    return _cnn(input_shape, classes, 100)


def _cnn(input_shape: tuple[int, ...], classes: int, channels: int) -> Any:
    import keras
    from keras import layers

    return keras.Sequential(
        [
            layers.Input(input_shape),
            layers.Reshape((input_shape[0], 1)),
            layers.Conv1D(channels, 5, strides=2, padding="same", activation="relu"),
            layers.Dropout(0.25),
            layers.Conv1D(channels, 3, strides=2, padding="same", activation="relu"),
            layers.Dropout(0.25),
            layers.Conv1D(channels, 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.25),
            layers.Dense(classes, activation="softmax"),
        ]
    )
