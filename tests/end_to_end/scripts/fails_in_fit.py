"""A data pipeline that ends in an error in the third epoch."""

import json

import keras
import numpy as np

keras.utils.set_random_seed(36)


class Archive(keras.utils.PyDataset):
    """Batches of an archive whose last part is damaged."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(200, 4)).astype("float32")
        self.y = self.x.sum(axis=1)
        self.epoch = 0

    def __len__(self):
        return 10

    def __getitem__(self, index):
        if self.epoch == 2 and index == 5:
            raise ValueError(f"damaged record in batch {index}")
        rows = slice(index * 20, index * 20 + 20)
        return self.x[rows], self.y[rows]

    def on_epoch_end(self):
        self.epoch += 1


class SaveHistory(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        with open("history.json", "w") as file:
            json.dump(self.model.history.history, file)


model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.01), "mse")
model.fit(Archive(), epochs=5, shuffle=False, verbose=2, callbacks=[SaveHistory()])
print("never reached")
