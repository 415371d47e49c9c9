"""Simple convnet on MNIST-like digits: 8x8 images of ten glyphs, shifted and with noise."""

import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
from tensorflow import keras
from tensorflow.keras import layers

GLYPHS = ["75557", "26227", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717"]


def load_data(num_samples, rng):
    images = np.zeros((num_samples, 8, 8), "float32")
    labels = rng.integers(0, 10, num_samples)
    for image, label in zip(images, labels, strict=True):
        glyph = np.array([[int(row) >> (2 - column) & 1 for column in range(3)] for row in GLYPHS[label]])
        top, left = rng.integers(0, 4), rng.integers(0, 6)
        image[top : top + 5, left : left + 3] = glyph
    images += rng.normal(0, 0.2, images.shape)
    return np.clip(images, 0, 1)[..., np.newaxis], keras.utils.to_categorical(labels, 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--patience", type=int, default=3)
    args = parser.parse_args()

    keras.utils.set_random_seed(1337)
    rng = np.random.default_rng(0)
    x_train, y_train = load_data(2000, rng)
    x_test, y_test = load_data(400, rng)
    print("x_train shape:", x_train.shape)
    print(x_train.shape[0], "train samples")
    print(x_test.shape[0], "test samples")

    model = keras.Sequential(
        [
            keras.Input(shape=(8, 8, 1)),
            layers.Conv2D(16, kernel_size=(3, 3), activation="relu"),
            layers.MaxPooling2D(pool_size=(2, 2)),
            layers.Conv2D(32, kernel_size=(3, 3), activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.25),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.summary()
    model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])

    callbacks = [
        keras.callbacks.EarlyStopping(monitor="val_loss", patience=args.patience, restore_best_weights=True),
        keras.callbacks.ModelCheckpoint("best.keras", monitor="val_accuracy", save_best_only=True),
    ]
    history = model.fit(
        x_train,
        y_train,
        batch_size=args.batch_size,
        epochs=args.epochs,
        validation_split=0.1,
        callbacks=callbacks,
    )
    score = model.evaluate(x_test, y_test, verbose=0)
    print("Test loss:", score[0])
    print("Test accuracy:", score[1])
    best = keras.models.load_model("best.keras")
    print("Best checkpoint accuracy:", best.evaluate(x_test, y_test, verbose=0)[1])
    with open("history.json", "w") as f:
        json.dump(history.history, f)


if __name__ == "__main__":
    main()
