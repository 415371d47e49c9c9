"""K-fold cross-validation: a new model for each fold."""

import json

import keras
import numpy as np

num_folds = 3
num_epochs = 4


def build_model(features):
    model = keras.Sequential(
        [
            keras.Input((features,)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="rmsprop", loss="mse", metrics=["mae"])
    return model


keras.utils.set_random_seed(4)
train_data = np.random.normal(size=(300, 8)).astype("float32")
train_targets = (train_data[:, 0] * 2 + np.sin(train_data[:, 1]) + 0.1 * np.random.normal(size=300)).astype("float32")
num_val_samples = len(train_data) // num_folds

all_histories = []
all_scores = []
for i in range(num_folds):
    print(f"Processing fold #{i}")
    val_data = train_data[i * num_val_samples : (i + 1) * num_val_samples]
    val_targets = train_targets[i * num_val_samples : (i + 1) * num_val_samples]
    partial_train_data = np.concatenate(
        [train_data[: i * num_val_samples], train_data[(i + 1) * num_val_samples :]], axis=0
    )
    partial_train_targets = np.concatenate(
        [train_targets[: i * num_val_samples], train_targets[(i + 1) * num_val_samples :]], axis=0
    )
    keras.backend.clear_session()
    model = build_model(train_data.shape[1])
    history = model.fit(
        partial_train_data,
        partial_train_targets,
        validation_data=(val_data, val_targets),
        epochs=num_epochs,
        batch_size=16,
        verbose=0,
    )
    all_histories.append(history.history)
    val_mse, val_mae = model.evaluate(val_data, val_targets, verbose=0)
    all_scores.append(val_mae)
    print(f"  mae {val_mae:.4f}")
print("mean:", np.mean(all_scores))
with open("history.json", "w") as file:
    json.dump(all_histories, file)
