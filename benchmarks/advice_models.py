"""Models for ``advice.py``, as ``FILE.py:FUNCTION`` of plans: healthy, or with a fault."""

from typing import Any

import keras
from keras import layers

Shape = tuple[int, ...]


def dense(input_shape: Shape, classes: int) -> Any:
    """A perceptron for classes."""
    return _of(input_shape, layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(classes, "softmax"))


def convolutional(input_shape: Shape, classes: int) -> Any:
    """A small convolutional network with batch normalization and dropout."""
    return _of(
        input_shape,
        layers.Conv2D(16, 3, padding="same"),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dropout(0.2),
        layers.Dense(classes, "softmax"),
    )


def normalized(input_shape: Shape, classes: int) -> Any:
    """The same with batch normalization after each layer, and without dropout."""
    blocks = [
        layer
        for filters in (16, 32)
        for layer in (
            layers.Conv2D(filters, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
        )
    ]
    return _of(input_shape, *blocks, layers.GlobalAveragePooling2D(), layers.Dense(classes, "softmax"))


def number(input_shape: Shape, classes: int = 0) -> Any:
    """A perceptron for a number."""
    del classes
    model = _of(input_shape, layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(32, "relu"), layers.Dense(1))
    model.compile("adam", "mse", metrics=["mae"])
    return model


def logits_as_probabilities(input_shape: Shape, classes: int) -> Any:
    """Logits with a loss that takes probabilities."""
    model = _of(input_shape, layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(classes))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def logits(input_shape: Shape, classes: int) -> Any:
    """Logits with a loss that takes them."""
    model = _of(input_shape, layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(classes))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def one_softmax(input_shape: Shape, classes: int) -> Any:
    """A softmax of a single unit, which is always 1."""
    del classes
    model = _of(input_shape, layers.Flatten(), layers.Dense(32, "relu"), layers.Dense(1, "softmax"))
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return model


def bounded_number(input_shape: Shape, classes: int = 0) -> Any:
    """A number between 0 and 1 for targets beyond these."""
    del classes
    model = _of(input_shape, layers.Dense(64, "relu"), layers.Dense(1, "sigmoid"))
    model.compile("adam", "mse")
    return model


def dead(input_shape: Shape, classes: int) -> Any:
    """Units whose ReLU is never active."""
    return _of(
        input_shape,
        layers.Flatten(),
        layers.Dense(64, "relu", bias_initializer=keras.initializers.Constant(-30.0)),
        layers.Dense(classes, "softmax"),
    )


def deep_sigmoid(input_shape: Shape, classes: int) -> Any:
    """Ten layers of sigmoids, through which gradients vanish."""
    hidden = [layers.Dense(32, "sigmoid", name=f"hidden{index}") for index in range(10)]
    return _of(input_shape, layers.Flatten(), *hidden, layers.Dense(classes, "softmax", name="out"))


def tiny(input_shape: Shape, classes: int) -> Any:
    """Too small for the data: one unit."""
    return _of(input_shape, layers.Flatten(), layers.Dense(1, "tanh"), layers.Dense(classes, "softmax"))


def large(input_shape: Shape, classes: int) -> Any:
    """Large enough to know small data by heart."""
    hidden = [layers.Dense(512, "relu"), layers.Dense(512, "relu")]
    return _of(input_shape, layers.Flatten(), *hidden, layers.Dense(classes, "softmax"))


def many_labels(input_shape: Shape, classes: int) -> Any:
    """A perceptron for any number of labels."""
    model = _of(input_shape, layers.Dense(64, "relu"), layers.Dense(classes or 5, "sigmoid"))
    model.compile("adam", "binary_crossentropy", metrics=["binary_accuracy"])
    return model


def tokens(input_shape: Shape, classes: int) -> Any:
    """An embedding of tokens and their mean."""
    return _of(
        input_shape, layers.Embedding(200, 16), layers.GlobalAveragePooling1D(), layers.Dense(classes, "softmax")
    )


def any_length(input_shape: Shape, classes: int) -> Any:
    """An embedding of sequences of any length."""
    del input_shape
    return _of((None,), layers.Embedding(50, 8), layers.GlobalAveragePooling1D(), layers.Dense(classes, "softmax"))


def recurrent(input_shape: Shape, classes: int = 0) -> Any:
    """A small LSTM for a number."""
    del classes
    model = _of(input_shape, layers.LSTM(16), layers.Dense(1))
    model.compile("adam", "mse")
    return model


def pixels(input_shape: Shape, classes: int = 0) -> Any:
    """Convolutions for a class of each pixel."""
    del classes
    return _of(
        input_shape,
        layers.Conv2D(8, 5, padding="same", activation="relu"),
        layers.Conv2D(8, 5, padding="same", activation="relu"),
        layers.Conv2D(2, 1, activation="softmax"),
    )


def _of(input_shape: Shape, *parts: Any) -> Any:
    return keras.Sequential([keras.Input(input_shape), *parts])
