"""Saves the model with its optimizer, loads it again and continues; then only its weights, in a new model."""

import json
import os

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models

tf.keras.utils.set_random_seed(29)
x = np.random.normal(size=(400, 10)).astype("float32")
y = (x @ np.random.normal(size=(10, 1))).astype("float32")


def create_model():
    model = models.Sequential([layers.Input((10,)), layers.Dense(20, activation="elu"), layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.Adam(0.005), loss="mse", metrics=["mae"])
    return model


model = create_model()
first = model.fit(x, y, epochs=2, batch_size=25, verbose=2)
model.save("model.keras")
del model
tf.keras.backend.clear_session()

model = models.load_model("model.keras")
print("restored at iteration", int(model.optimizer.iterations))
second = model.fit(x, y, epochs=4, initial_epoch=2, batch_size=25, verbose=2)
model.save_weights("model.weights.h5")

model = create_model()
model.load_weights("model.weights.h5")
third = model.fit(x, y, epochs=1, batch_size=25, verbose=2)
print(sorted(os.listdir()))
with open("history.json", "w") as file:
    json.dump([first.history, second.history, third.history], file)
