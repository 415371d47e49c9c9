"""Tries a large batch first; if that fails, tries again with a smaller one."""

import json

import keras
import numpy as np

keras.utils.set_random_seed(32)
x = np.random.normal(size=(320, 6)).astype("float32")
y = (x[:, 0] > x[:, 1]).astype("float32")


class MemoryLimit(keras.callbacks.Callback):
    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def on_train_batch_begin(self, batch, logs=None):
        if self.batch_size > 32 and batch == 2:
            raise MemoryError(f"a batch of {self.batch_size} does not fit")


for batch_size in (64, 32):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    try:
        history = model.fit(x, y, batch_size=batch_size, epochs=3, callbacks=[MemoryLimit(batch_size)], verbose=0)
    except MemoryError as error:
        print("failed:", error)
    else:
        print("batch size", batch_size, "loss", round(history.history["loss"][-1], 4))
with open("history.json", "w") as file:
    json.dump(history.history, file)
