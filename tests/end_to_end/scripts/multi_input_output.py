"""Functional API: three inputs, two outputs, a loss for each with a weight."""

import json

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)

num_tags = 12
num_words = 200
num_departments = 4

title_input = keras.Input(shape=(None,), name="title", dtype="int32")
body_input = keras.Input(shape=(None,), name="body", dtype="int32")
tags_input = keras.Input(shape=(num_tags,), name="tags")

title_features = layers.LSTM(16)(layers.Embedding(num_words, 16)(title_input))
body_features = layers.LSTM(8)(layers.Embedding(num_words, 16)(body_input))
x = layers.concatenate([title_features, body_features, tags_input])
priority_pred = layers.Dense(1, name="priority")(x)
department_pred = layers.Dense(num_departments, name="department")(x)

model = keras.Model(
    inputs=[title_input, body_input, tags_input],
    outputs={"priority": priority_pred, "department": department_pred},
    name="issue_tickets",
)
model.compile(
    optimizer=keras.optimizers.RMSprop(5e-3),
    loss={
        "priority": keras.losses.BinaryCrossentropy(from_logits=True),
        "department": keras.losses.CategoricalCrossentropy(from_logits=True),
    },
    metrics={"priority": ["accuracy"], "department": ["accuracy"]},
    loss_weights={"priority": 1.0, "department": 0.2},
)

title_data = np.random.randint(num_words, size=(640, 5)).astype("int32")
body_data = np.random.randint(num_words, size=(640, 20)).astype("int32")
tags_data = np.random.randint(2, size=(640, num_tags)).astype("float32")
department = np.argmax(tags_data[:, :num_departments] + 0.01 * np.arange(num_departments), axis=1)
priority = (title_data.mean(axis=1, keepdims=True) > num_words / 2).astype("float32")

history = model.fit(
    {"title": title_data, "body": body_data, "tags": tags_data},
    {"priority": priority, "department": keras.utils.to_categorical(department, num_departments)},
    epochs=3,
    batch_size=32,
    validation_split=0.2,
    verbose=2,
)
print(sorted(history.history))
with open("history.json", "w") as file:
    json.dump(history.history, file, indent=1)
