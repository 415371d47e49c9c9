"""A model and data of every kind of source, as a user's own file; the sources shuffle, and have batches of 32."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

EXAMPLES, BATCH = 330, 32
STEPS = -(-EXAMPLES // BATCH)


def examples():
    x = np.random.default_rng(1).normal(size=(EXAMPLES, 6)).astype("float32")
    return x, np.sin(x[:, :2])


def model(element_spec):
    """Fits any of the sources, and has random numbers, moving averages and momentum to be continued."""
    inputs, targets = element_spec
    labels = targets.shape.rank == 1
    network = keras.Sequential(
        [
            keras.Input(inputs.shape[1:]),
            layers.Flatten(),
            layers.Dense(16, activation="tanh"),
            layers.BatchNormalization(),
            layers.Dropout(0.2, seed=1),
            layers.Dense(3, activation="softmax") if labels else layers.Dense(targets.shape[1]),
        ]
    )
    loss = "sparse_categorical_crossentropy" if labels else "mean_squared_error"
    network.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss)
    return network


def arrays():
    return {"train": examples()}


def tf_data():
    data = tf.data.Dataset.from_tensor_slices(examples()).shuffle(EXAMPLES, seed=3)
    return {"train": data.batch(BATCH).prefetch(2)}


def endless_tf_data():
    data = tf.data.Dataset.from_tensor_slices(examples()).repeat().shuffle(100, seed=3)
    return {"train": data.batch(BATCH)}


class Batches(keras.utils.PyDataset):
    """Shuffles its examples after each epoch."""

    def __init__(self):
        super().__init__()
        self.x, self.y = examples()
        self.epoch = 0
        self.on_epoch_end()

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        rows = self.order[index * BATCH : (index + 1) * BATCH]
        return self.x[rows], self.y[rows]

    def on_epoch_end(self):
        self.order = np.random.default_rng(self.epoch).permutation(EXAMPLES)
        self.epoch += 1


def py_dataset():
    return {"train": Batches()}


def generator():
    """A function that makes a generator of one epoch."""

    def batches():
        x, y = examples()
        for first in range(0, EXAMPLES, BATCH):
            yield x[first : first + BATCH], y[first : first + BATCH]

    return {"train": batches}


def endless_generator():
    """A generator without end, each of whose batches differs."""

    def batches():
        random = np.random.default_rng(5)
        while True:
            x = random.normal(size=(BATCH, 6)).astype("float32")
            yield x, np.sin(x[:, :2])

    return {"train": batches()}
