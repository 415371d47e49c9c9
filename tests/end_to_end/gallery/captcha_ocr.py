"""Reads four digits in an image with the CTC loss, which a layer adds: the texts are an input, not targets."""

from pathlib import Path

import keras
import numpy as np
from keras import layers, ops


def load(seed):
    digits = np.load(Path(__file__).with_name("digits.npz"))
    rows = np.random.default_rng(seed).integers(0, 1797, (1500, 4))
    images = digits["images"][rows].astype("float32") / 16
    images = images.transpose(0, 2, 1, 3).reshape(-1, 8, 32, 1)
    return {"image": images, "text": digits["labels"][rows].astype("int32") + 1}  # 0 is "no digit"


class AddCTC(layers.Layer):
    """Adds the CTC loss of its inputs, and returns the probabilities."""

    def call(self, text, logits):
        count = ops.ones_like(text[:, 0])
        loss = ops.ctc_loss(text, logits, 4 * count, logits.shape[1] * count, mask_index=0)
        self.add_loss(ops.mean(loss))
        return ops.softmax(logits)


def build():
    image, text = keras.Input((8, 32, 1), name="image"), keras.Input((4,), dtype="int32", name="text")
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(image)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = layers.Reshape((16, -1))(layers.Permute((2, 1, 3))(x))
    x = layers.Conv1D(64, 3, padding="same", activation="relu")(x)
    model = keras.Model({"image": image, "text": text}, AddCTC()(text, layers.Dense(11)(x)))
    model.compile(keras.optimizers.Adam(5e-3))
    return model
