"""Finds the 4 percent of payments that are fraud: they weigh as much as all others together."""

import keras
import numpy as np
from keras import layers


def load(seed):
    rng = np.random.default_rng(seed)
    payments = rng.normal(size=(5000, 12)).astype("float32")
    fraud = rng.random(5000) < 0.04
    payments[fraud, :4] += 1.5
    weights = np.where(fraud, 0.5 / fraud.mean(), 0.5 / (1 - fraud.mean())).astype("float32")
    return payments, fraud[:, None].astype("float32"), weights


def build():
    model = keras.Sequential(
        [
            keras.Input((12,)),
            layers.Dense(32, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    metrics = [keras.metrics.Recall(name="recall"), keras.metrics.AUC(name="auc")]
    model.compile(keras.optimizers.Adam(3e-3), "binary_crossentropy", metrics=metrics)
    return model
