"""A PyDataset that loads its batches in worker processes."""

import json
import math
import os

import keras
import numpy as np


class FileSequence(keras.utils.PyDataset):
    """Loads files of arrays, a batch at a time."""

    def __init__(self, paths, batch_size, **kwargs):
        super().__init__(**kwargs)
        self.paths = paths
        self.batch_size = batch_size

    def __len__(self):
        return math.ceil(len(self.paths) / self.batch_size)

    def __getitem__(self, idx):
        low = idx * self.batch_size
        batch = [np.load(path) for path in self.paths[low : low + self.batch_size]]
        return np.stack([item["x"] for item in batch]), np.array([item["y"] for item in batch])


def write_files(folder, count):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(13)
    paths = []
    for index in range(count):
        y = index % 2
        path = os.path.join(folder, f"{index:04d}.npz")
        np.savez(path, x=rng.normal(y, 1.0, 10).astype("float32"), y=np.float32(y))
        paths.append(path)
    return paths


if __name__ == "__main__":
    keras.utils.set_random_seed(14)
    paths = write_files("train_files", 240)
    train = FileSequence(paths[:200], 16, workers=2, use_multiprocessing=True, max_queue_size=8)
    valid = FileSequence(paths[200:], 16)
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    history = model.fit(train, validation_data=valid, epochs=3, shuffle=False, verbose=2)
    print("batches in an epoch:", len(train))
    with open("history.json", "w") as file:
        json.dump(history.history, file)
