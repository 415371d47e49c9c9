"""Several batches in each call of the compiled function."""

import json

import keras
import numpy as np

keras.utils.set_random_seed(20)
x = np.random.normal(size=(1280, 20)).astype("float32")
y = (np.abs(x[:, :5]).sum(axis=1) > 4).astype("float32")

model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile(
    optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
    steps_per_execution=8,
)
calls = []
history = model.fit(
    x,
    y,
    batch_size=32,
    epochs=4,
    validation_split=0.2,
    verbose=0,
    callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: calls.append(batch))],
)
print("callbacks after the batches", calls[:4])
with open("history.json", "w") as file:
    json.dump(history.history, file)
