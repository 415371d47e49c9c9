"""Convolutional autoencoder for image denoising: first on clean images, then from noisy to clean ones."""

import json

import keras
import numpy as np
from keras import layers
from keras.models import Model

keras.utils.set_random_seed(11)


def stripes(count):
    rng = np.random.default_rng(1)
    rows, columns = np.mgrid[0:12, 0:12]
    angle, phase = rng.uniform(0, np.pi, (count, 1, 1)), rng.uniform(0, 6, (count, 1, 1))
    return (0.5 + 0.5 * np.sin(rows * np.cos(angle) + columns * np.sin(angle) + phase))[..., None].astype("float32")


def noise(array):
    """Adds random noise to each image in the supplied array."""
    noise_factor = 0.4
    noisy_array = array + noise_factor * np.random.normal(loc=0.0, scale=1.0, size=array.shape)
    return np.clip(noisy_array, 0.0, 1.0)


train_data, test_data = stripes(600)[:500], stripes(600)[500:]
noisy_train_data, noisy_test_data = noise(train_data), noise(test_data)

input = layers.Input(shape=(12, 12, 1))
x = layers.Conv2D(16, (3, 3), activation="relu", padding="same")(input)
x = layers.MaxPooling2D((2, 2), padding="same")(x)
x = layers.Conv2DTranspose(16, (3, 3), strides=2, activation="relu", padding="same")(x)
x = layers.Conv2D(1, (3, 3), activation="sigmoid", padding="same")(x)
autoencoder = Model(input, x)
autoencoder.compile(optimizer="adam", loss="binary_crossentropy")

reconstructing = autoencoder.fit(
    x=train_data,
    y=train_data,
    epochs=2,
    batch_size=64,
    shuffle=True,
    validation_data=(test_data, test_data),
    verbose=2,
)
denoising = autoencoder.fit(
    x=noisy_train_data,
    y=train_data,
    epochs=3,
    batch_size=64,
    shuffle=True,
    validation_data=(noisy_test_data, test_data),
    verbose=2,
)
predictions = autoencoder.predict(noisy_test_data, verbose=0)
print("error of the noisy images", np.mean((noisy_test_data - test_data) ** 2))
print("error of the denoised images", np.mean((predictions - test_data) ** 2))
with open("history.json", "w") as file:
    json.dump([reconstructing.history, denoising.history], file)
