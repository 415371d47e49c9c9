"""Keras on JAX: the backend is chosen before the import; a stateless train_step with JAX gradients."""

import json
import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np

print("backend:", keras.backend.backend())


class CustomModel(keras.Model):
    def compute_loss_and_updates(self, trainable_variables, non_trainable_variables, x, y):
        y_pred, non_trainable_variables = self.stateless_call(
            trainable_variables, non_trainable_variables, x, training=True
        )
        return self.compute_loss(x, y, y_pred), (y_pred, non_trainable_variables)

    def train_step(self, state, data):
        trainable_variables, non_trainable_variables, optimizer_variables, metrics_variables = state
        x, y = data
        grad_fn = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)
        (loss, (y_pred, non_trainable_variables)), grads = grad_fn(trainable_variables, non_trainable_variables, x, y)
        trainable_variables, optimizer_variables = self.optimizer.stateless_apply(
            optimizer_variables, grads, trainable_variables
        )
        new_metrics_vars, logs = [], {}
        for metric in self.metrics:
            this_metric_vars = metrics_variables[len(new_metrics_vars) : len(new_metrics_vars) + len(metric.variables)]
            if metric.name == "loss":
                this_metric_vars = metric.stateless_update_state(this_metric_vars, loss)
            else:
                this_metric_vars = metric.stateless_update_state(this_metric_vars, y, y_pred)
            logs[metric.name] = metric.stateless_result(this_metric_vars)
            new_metrics_vars += this_metric_vars
        return logs, (trainable_variables, non_trainable_variables, optimizer_variables, new_metrics_vars)


keras.utils.set_random_seed(33)
x = np.random.random((640, 16)).astype("float32")
y = (x @ np.random.normal(size=(16, 1))).astype("float32")

inputs = keras.Input(shape=(16,))
outputs = keras.layers.Dense(1)(keras.layers.Dense(16, activation="relu")(inputs))
custom = CustomModel(inputs, outputs)
custom.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
custom_history = custom.fit(x, y, epochs=3, batch_size=40, verbose=2)

usual = keras.Sequential([keras.Input((16,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
usual.compile(optimizer="adam", loss="mse", metrics=["mae"])
usual_history = usual.fit(x, y, epochs=3, batch_size=40, validation_split=0.25, verbose=2)
with open("history.json", "w") as file:
    json.dump([custom_history.history, usual_history.history], file)
