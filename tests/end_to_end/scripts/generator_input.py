"""Trains on a Python generator that augments its images for ever, with steps_per_epoch."""

import json

import numpy as np
from keras.layers import Conv2D, Dense, Flatten, Input
from keras.models import Sequential
from keras.utils import set_random_seed


def load(count, seed):
    rng = np.random.default_rng(seed)
    images = rng.random((count, 10, 10, 1)) * 0.5
    labels = rng.integers(0, 2, count)
    for image, label in zip(images, labels, strict=True):
        position = rng.integers(1, 9)
        if label:
            image[position] = 1
        else:
            image[:, position] = 1
    return images.astype("float32"), labels


def image_generator(images, labels, batch_size, augment):
    rng = np.random.default_rng(30)
    while True:
        index = rng.permutation(len(images))
        for start in range(0, len(images) - batch_size + 1, batch_size):
            batch = images[index[start : start + batch_size]]
            if augment and rng.random() < 0.5:
                batch = batch[:, ::-1]
            yield batch, labels[index[start : start + batch_size]]


set_random_seed(25)
train_images, train_labels = load(400, 1)
val_images, val_labels = load(100, 2)

model = Sequential()
model.add(Input(shape=(10, 10, 1)))
model.add(Conv2D(8, (3, 3), activation="relu"))
model.add(Flatten())
model.add(Dense(2, activation="softmax"))
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["acc"])

H = model.fit(
    image_generator(train_images, train_labels, 32, augment=True),
    steps_per_epoch=400 // 32,
    validation_data=image_generator(val_images, val_labels, 25, augment=False),
    validation_steps=4,
    epochs=4,
    verbose=2,
)
print("[INFO] serializing network...")
model.save("lines.keras")
with open("history.json", "w") as file:
    json.dump(H.history, file)
