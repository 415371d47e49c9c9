"""A search over learning rates and widths: the model with the least validation loss wins."""

import itertools
import json

import keras
import numpy as np

keras.utils.set_random_seed(28)
x = np.random.normal(size=(512, 5)).astype("float32")
y = np.tanh(x @ np.array([1.0, -2.0, 0.5, 0.0, 3.0])).astype("float32")

trials = []
for learning_rate, units in itertools.product([1e-3, 1e-2], [4, 16]):
    model = keras.Sequential(
        [keras.Input((5,)), keras.layers.Dense(units, activation="relu"), keras.layers.Dense(1)],
        name=f"mlp_{units}",
    )
    model.compile(keras.optimizers.Adam(learning_rate), "mse")
    history = model.fit(x, y, epochs=3, batch_size=64, validation_split=0.25, verbose=0)
    trials.append({"learning_rate": learning_rate, "units": units, "history": history.history})
    print(f"learning rate {learning_rate:g}, {units:2d} units: val_loss {history.history['val_loss'][-1]:.5f}")
best = min(trials, key=lambda trial: trial["history"]["val_loss"][-1])
print("best:", best["learning_rate"], best["units"])
with open("history.json", "w") as file:
    json.dump([trial["history"] for trial in trials], file)
