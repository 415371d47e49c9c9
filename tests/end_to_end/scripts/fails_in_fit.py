"""Trains on a stream of records, of which one in the third epoch is damaged."""

import json

import keras
import numpy as np

keras.utils.set_random_seed(36)


def records():
    rng = np.random.default_rng(0)
    for number in range(1000):
        if number == 25:
            raise ValueError(f"damaged record: {number}")
        x = rng.normal(size=(20, 4)).astype("float32")
        yield x, x.sum(axis=1, keepdims=True)


class SaveHistory(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print(f"batch {batch}: loss {logs['loss']:.5f}")

    def on_epoch_end(self, epoch, logs=None):
        losses.append(logs["loss"])
        with open("history.json", "w") as file:
            json.dump({"loss": losses}, file)


losses = []
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.01), "mse")
model.fit(records(), steps_per_epoch=10, epochs=5, verbose=0, callbacks=[SaveHistory()])
print("never reached")
