"""Works in a separate directory, under which it writes everything; asks for details in the environment."""

import json
import os
import shutil
import tempfile

import keras
import numpy as np

home = os.getcwd()
work = os.environ.get("WORK_DIR") or os.path.join(home, "experiments", "first")
os.makedirs(work, exist_ok=True)
os.chdir(work)
print("working in", os.path.relpath(os.getcwd(), home))

keras.utils.set_random_seed(39)
x = np.linspace(-3, 3, 256, dtype="float32")[:, None]
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.02), "mse")
with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    checkpoint = keras.callbacks.ModelCheckpoint("epoch-{epoch}.weights.h5", save_weights_only=True)
    history = model.fit(x, np.sin(x), epochs=3, verbose=2, callbacks=[checkpoint])
    shutil.copy("epoch-3.weights.h5", work)
    os.chdir(work)
with open("history.json", "w") as file:
    json.dump(history.history, file)
print(sorted(os.listdir()))
