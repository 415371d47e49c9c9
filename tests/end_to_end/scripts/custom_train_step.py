"""Customizing what happens in fit(): a train_step and a test_step with their own trackers."""

import json

import keras
import numpy as np
import tensorflow as tf


class CustomModel(keras.Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.mae_metric = keras.metrics.MeanAbsoluteError(name="mae")
        self.loss_fn = keras.losses.Huber()

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.loss_fn(y, y_pred)
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply(gradients, self.trainable_weights)
        self.loss_tracker.update_state(loss)
        self.mae_metric.update_state(y, y_pred)
        return {"loss": self.loss_tracker.result(), "mae": self.mae_metric.result()}

    def test_step(self, data):
        x, y = data
        y_pred = self(x, training=False)
        self.loss_tracker.update_state(self.loss_fn(y, y_pred))
        self.mae_metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}

    @property
    def metrics(self):
        return [self.loss_tracker, self.mae_metric]


class LossPrinter(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % 8 == 0:
            print(f"batch {batch}: loss {logs['loss']:.5f}, mae {logs['mae']:.5f}")


keras.utils.set_random_seed(10)
x = np.random.random((1000, 32)).astype("float32")
y = (x @ np.random.normal(size=(32, 1)) + 0.1 * np.random.normal(size=(1000, 1))).astype("float32")

inputs = keras.Input(shape=(32,))
outputs = keras.layers.Dense(1)(keras.layers.Dense(32, activation="gelu")(inputs))
model = CustomModel(inputs, outputs)
model.compile(optimizer=keras.optimizers.AdamW(5e-3))
history = model.fit(
    x[:800], y[:800], epochs=3, batch_size=48, validation_data=(x[800:], y[800:]), callbacks=[LossPrinter()], verbose=0
)
with open("history.json", "w") as file:
    json.dump(history.history, file)
