"""Classifies the texts of a folder by their words, which the model finds itself."""

from pathlib import Path

import keras
from keras import layers


def build():
    words = layers.TextVectorization(max_tokens=1000, output_sequence_length=20)
    words.adapt([file.read_text() for file in sorted(Path(__file__).parent.glob("reviews/train/*/*.txt"))])
    text = keras.Input((), dtype="string")
    x = layers.Embedding(words.vocabulary_size(), 16)(words(text))
    x = layers.Conv1D(16, 3, activation="relu")(x)
    x = layers.GlobalMaxPooling1D()(x)
    model = keras.Model(text, layers.Dense(1, activation="sigmoid")(x))
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
    return model
