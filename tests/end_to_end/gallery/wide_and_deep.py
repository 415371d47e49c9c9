"""Two inputs, numbers and categories: a linear part beside a deep one."""

import keras
from keras import layers


def build():
    numbers = keras.Input((6,), name="numbers")
    shop = keras.Input((1,), dtype="int32", name="shop")
    wide = layers.Concatenate()([layers.Flatten()(layers.CategoryEncoding(8)(shop)), numbers])
    deep = layers.Concatenate()([layers.Flatten()(layers.Embedding(8, 4)(shop)), numbers])
    for _ in range(2):
        deep = layers.Dense(32, activation="relu")(deep)
    x = layers.Concatenate()([wide, deep])
    model = keras.Model([numbers, shop], layers.Dense(1, activation="sigmoid")(x))
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
    return model
