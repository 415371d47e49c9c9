"""Basic regression: predict fuel efficiency from four properties of a car."""

import json

import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
np.random.seed(0)

n = 600
cylinders = np.random.choice([4, 6, 8], n)
weight = 1500 + 350 * cylinders + 300 * np.random.randn(n)
horsepower = 20 * cylinders + 0.01 * weight + 8 * np.random.randn(n)
year = np.random.randint(70, 83, n)
mpg = 60 - 0.008 * weight - 0.04 * horsepower + 0.5 * (year - 76) + np.random.randn(n)

features = np.stack([cylinders, weight, horsepower, year], axis=1).astype("float32")
split = int(0.8 * n)

normalizer = tf.keras.layers.Normalization(axis=-1)
normalizer.adapt(features[:split])
print(normalizer.mean.numpy())

model = tf.keras.Sequential(
    [
        normalizer,
        tf.keras.layers.Dense(64, activation="relu", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1)),
        tf.keras.layers.Dense(64, activation="relu", kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2)),
        tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=3)),
    ]
)
model.compile(loss="mean_absolute_error", optimizer=tf.keras.optimizers.Adam(0.01), metrics=["mse"])

history = model.fit(
    features[:split],
    mpg[:split].astype("float32"),
    validation_data=(features[split:], mpg[split:].astype("float32")),
    epochs=20,
    shuffle=False,
    verbose=0,
    callbacks=[
        tf.keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=2, verbose=1),
        tf.keras.callbacks.CSVLogger("training.csv"),
    ],
)
for epoch in range(0, 20, 5):
    loss, val_loss = history.history["loss"][epoch], history.history["val_loss"][epoch]
    print(f"epoch {epoch:2d}  loss {loss:.3f}  val_loss {val_loss:.3f}")
print("columns of the log:", open("training.csv").readline().strip())
json.dump({k: [float(x) for x in v] for k, v in history.history.items()}, open("history.json", "w"))
