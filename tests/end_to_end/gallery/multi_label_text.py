"""Finds all subjects of a text: each text has none, one or several."""

import keras
import numpy as np
from keras import layers

SUBJECTS = {
    "vision": ["image", "pixel", "camera", "photo"],
    "language": ["word", "sentence", "grammar", "text"],
    "audio": ["sound", "voice", "music", "noise"],
    "theory": ["proof", "bound", "lemma", "theorem"],
}
COMMON = ["we", "show", "that", "model", "with", "new", "results", "data", "for", "learning"]


def load(seed):
    rng = np.random.default_rng(seed)
    labels = (rng.random((1000, 4)) < 0.4).astype("float32")
    texts = []
    for row in labels:
        words = list(rng.choice(COMMON, 8))
        for own, is_about in zip(SUBJECTS.values(), row, strict=True):
            words += list(rng.choice(own, 2)) if is_about else []
        texts.append(" ".join(rng.permutation(words)))
    vectorize = layers.TextVectorization(output_mode="multi_hot")
    vectorize.adapt(texts[:800])
    words = vectorize(texts).numpy()
    return {
        "train": (words[:800], labels[:800]),
        "validation": (words[800:], labels[800:]),
        "class_names": list(SUBJECTS),
    }


def build(input_shape, classes):
    model = keras.Sequential([keras.Input(input_shape), layers.Dense(32, activation="relu"), layers.Dense(classes)])
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(
        keras.optimizers.Adam(0.01), loss, metrics=[keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")]
    )
    return model
