"""Keras on PyTorch: the model is a torch.nn.Module, too, and reads from a DataLoader."""

import json
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch

keras.utils.set_random_seed(34)
features = torch.randn(640, 12, generator=torch.Generator().manual_seed(1))
labels = (features[:, 0] > features[:, 1]).long()
training = torch.utils.data.TensorDataset(features[:512], labels[:512])
validation = torch.utils.data.TensorDataset(features[512:], labels[512:])
train_loader = torch.utils.data.DataLoader(training, batch_size=32, shuffle=False)
val_loader = torch.utils.data.DataLoader(validation, batch_size=32)

model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(2)])
print("a module:", isinstance(model, torch.nn.Module))
model.compile(
    optimizer=keras.optimizers.Adam(0.005),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = model.fit(train_loader, epochs=3, validation_data=val_loader, verbose=2)
with open("history.json", "w") as file:
    json.dump(history.history, file)
