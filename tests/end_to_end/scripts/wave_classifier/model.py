"""The network of the classifier."""

import keras


def build(length):
    return keras.Sequential(
        [
            keras.Input((length, 1)),
            keras.layers.Conv1D(16, 5, activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(2, activation="softmax"),
        ],
        name="wave_classifier",
    )
