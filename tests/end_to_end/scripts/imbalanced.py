"""Classification on imbalanced data: metrics of the rare class, class weights, then weights of the samples."""

import json

import keras
import numpy as np

METRICS = [
    keras.metrics.TruePositives(name="tp"),
    keras.metrics.FalsePositives(name="fp"),
    keras.metrics.BinaryAccuracy(name="accuracy"),
    keras.metrics.Precision(name="precision"),
    keras.metrics.Recall(name="recall"),
    keras.metrics.AUC(name="auc"),
    keras.metrics.AUC(name="prc", curve="PR"),
]


def make_model(metrics, output_bias):
    model = keras.Sequential(
        [
            keras.layers.Input((9,)),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1, activation="sigmoid", bias_initializer=keras.initializers.Constant(output_bias)),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="binary_crossentropy", metrics=metrics)
    return model


keras.utils.set_random_seed(24)
labels = (np.random.random(2000) < 0.05).astype("float32")
features = (np.random.normal(size=(2000, 9)) + labels[:, None] * 0.8).astype("float32")
neg, pos = np.bincount(labels.astype(int))
print(f"Examples:\n    Total: {neg + pos}\n    Positive: {pos} ({100 * pos / (neg + pos):.2f}% of total)")

train, val = slice(0, 1600), slice(1600, 2000)
class_weight = {0: (neg + pos) / neg / 2.0, 1: (neg + pos) / pos / 2.0}
early_stopping = keras.callbacks.EarlyStopping(monitor="val_prc", mode="max", patience=4, restore_best_weights=True)

weighted_model = make_model(METRICS, np.log(pos / neg))
weighted_history = weighted_model.fit(
    features[train],
    labels[train],
    batch_size=100,
    epochs=4,
    callbacks=[early_stopping],
    validation_data=(features[val], labels[val]),
    class_weight=class_weight,
    verbose=2,
)

sample_weight = np.where(labels == 1, 10.0, 1.0) * np.linspace(0.5, 1.5, 2000)
sampled_model = make_model(["accuracy"], 0.0)
sampled_history = sampled_model.fit(
    features[train],
    labels[train],
    sample_weight=sample_weight[train],
    batch_size=100,
    epochs=3,
    validation_data=(features[val], labels[val], sample_weight[val]),
    verbose=2,
)
with open("history.json", "w") as file:
    json.dump([weighted_history.history, sampled_history.history], file)
