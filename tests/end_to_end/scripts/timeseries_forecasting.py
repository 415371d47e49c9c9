"""Timeseries forecasting: an LSTM on windows of a temperature with a daily and a yearly period."""

import json

import keras
import numpy as np

keras.utils.set_random_seed(27)
hours = np.arange(1500)
temperature = 10 - 8 * np.cos(2 * np.pi * hours / 1500) - 4 * np.cos(2 * np.pi * hours / 24)
temperature += np.random.normal(0, 0.5, hours.size)
wind = np.abs(np.random.normal(3, 1, hours.size))
features = np.stack([temperature, wind], axis=1)

train_split = int(0.7 * len(features))
mean, std = features[:train_split].mean(axis=0), features[:train_split].std(axis=0)
features = (features - mean) / std

past, future, step, batch_size = 24, 3, 2, 64
sequence_length = past // step


def windows(rows):
    targets = rows[past + future :, 0]
    return keras.utils.timeseries_dataset_from_array(
        rows[: len(targets)], targets, sequence_length=sequence_length, sampling_rate=step, batch_size=batch_size
    )


dataset_train, dataset_val = windows(features[:train_split]), windows(features[train_split:])
for inputs_batch, targets_batch in dataset_train.take(1):
    print("Input shape:", inputs_batch.numpy().shape)
    print("Target shape:", targets_batch.numpy().shape)

inputs = keras.layers.Input(shape=(sequence_length, 2))
outputs = keras.layers.Dense(1)(keras.layers.LSTM(16)(inputs))
model = keras.Model(inputs=inputs, outputs=outputs)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.01), loss="mse")

es_callback = keras.callbacks.EarlyStopping(monitor="val_loss", min_delta=0, patience=1)
modelckpt_callback = keras.callbacks.ModelCheckpoint(
    monitor="val_loss", filepath="model.weights.h5", verbose=1, save_weights_only=True, save_best_only=True
)
history = model.fit(
    dataset_train, epochs=4, validation_data=dataset_val, callbacks=[es_callback, modelckpt_callback], verbose=0
)
with open("history.json", "w") as file:
    json.dump(history.history, file)
