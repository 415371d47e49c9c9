"""Mixed precision: float16 activations, float32 variables and loss scaling."""

import json

import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers, mixed_precision

keras.utils.set_random_seed(23)
mixed_precision.set_global_policy("mixed_float16")
print("Compute dtype:", mixed_precision.global_policy().compute_dtype)
print("Variable dtype:", mixed_precision.global_policy().variable_dtype)

x = tf.random.stateless_uniform((640, 30), seed=(5, 6)).numpy()
y = (x[:, :10].sum(axis=1) > x[:, 10:20].sum(axis=1)).astype("int32")

inputs = keras.Input(shape=(30,), name="digits")
h = layers.Dense(64, activation="relu", name="dense_1")(inputs)
h = layers.Dense(2, name="dense_logits")(h)
outputs = layers.Activation("softmax", dtype="float32", name="predictions")(h)
model = keras.Model(inputs=inputs, outputs=outputs)
model.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.RMSprop(), metrics=["accuracy"])
print("optimizer:", type(model.optimizer).__name__)
history = model.fit(x, y, batch_size=64, epochs=4, validation_split=0.2, verbose=2)
with open("history.json", "w") as file:
    json.dump(history.history, file)
