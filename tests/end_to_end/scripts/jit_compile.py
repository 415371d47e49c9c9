"""The same network compiled with XLA, with gradient accumulation and an average of the weights."""

import json

import keras
import numpy as np

keras.utils.set_random_seed(22)
x = np.random.normal(size=(960, 24)).astype("float32")
y = np.argmax(x[:, :3], axis=1)

model = keras.Sequential(
    [
        keras.layers.Input((24,)),
        keras.layers.Dense(48, activation="silu"),
        keras.layers.Dense(48, activation="silu"),
        keras.layers.Dense(3, activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(3e-3, gradient_accumulation_steps=2, use_ema=True, ema_momentum=0.9),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
    jit_compile=True,
)
history = model.fit(x[:768], y[:768], batch_size=32, epochs=3, validation_data=(x[768:], y[768:]), verbose=2)
with open("history.json", "w") as file:
    json.dump(history.history, file)
