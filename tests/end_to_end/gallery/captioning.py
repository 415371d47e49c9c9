"""Writes the name of the digit in an image, letter by letter: an image and a text go in, the next letters come out."""

from pathlib import Path

import keras
import numpy as np
from keras import layers

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
LETTERS = " <" + "".join(sorted(set("".join(NAMES)))) + ">"


def load():
    digits = np.load(Path(__file__).with_name("digits.npz"))
    texts = np.array([[LETTERS.index(letter) for letter in f"<{name}>".ljust(7)] for name in NAMES])
    texts = texts[digits["labels"]].astype("int32")
    inputs = {"image": digits["images"][..., None].astype("float32") / 16, "text": texts[:, :-1]}
    return inputs, texts[:, 1:]


def build():
    image = keras.Input((8, 8, 1), name="image")
    text = keras.Input((None,), dtype="int32", name="text")
    x = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(image)
    state = layers.Dense(64, activation="tanh")(layers.Flatten()(x))
    x = layers.Embedding(len(LETTERS), 32, mask_zero=True)(text)
    x = layers.GRU(64, return_sequences=True)(x, initial_state=state)
    model = keras.Model([image, text], layers.Dense(len(LETTERS), activation="softmax")(x))
    model.compile(
        keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", weighted_metrics=["sparse_categorical_accuracy"]
    )
    return model
