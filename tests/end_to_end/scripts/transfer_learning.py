"""Transfer learning and fine-tuning: the head with a frozen base, then some layers of the base, too."""

import json

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(17)
IMG_SHAPE = (16, 16, 3)

rng = np.random.default_rng(2)
labels = rng.integers(0, 2, 320)
tint = np.where(labels[:, None, None, None] == 1, [[[[60, 0, 0]]]], [[[[0, 0, 60]]]])
images = np.clip(rng.normal(110, 40, (320, *IMG_SHAPE)) + tint, 0, 255).astype("float32")
train_dataset = tf.data.Dataset.from_tensor_slices((images[:256], labels[:256])).batch(32)
validation_dataset = tf.data.Dataset.from_tensor_slices((images[256:], labels[256:])).batch(32)

data_augmentation = tf.keras.Sequential([tf.keras.layers.RandomFlip("horizontal", seed=1)])

base_model = tf.keras.Sequential(
    [
        tf.keras.Input(shape=IMG_SHAPE),
        tf.keras.layers.Conv2D(16, 3, strides=2, name="block1"),
        tf.keras.layers.BatchNormalization(name="block1_bn"),
        tf.keras.layers.ReLU(),
        tf.keras.layers.Conv2D(32, 3, strides=2, name="block2"),
        tf.keras.layers.BatchNormalization(name="block2_bn"),
        tf.keras.layers.ReLU(),
    ],
    name="base",
)
base_model.trainable = False

inputs = tf.keras.Input(shape=IMG_SHAPE)
x = data_augmentation(inputs)
x = tf.keras.layers.Rescaling(1 / 127.5, offset=-1)(x)
x = base_model(x, training=False)
x = tf.keras.layers.GlobalAveragePooling2D()(x)
x = tf.keras.layers.Dropout(0.2)(x)
outputs = tf.keras.layers.Dense(1, activation="sigmoid")(x)
model = tf.keras.Model(inputs, outputs)

base_learning_rate = 0.01
model.compile(
    optimizer=tf.keras.optimizers.Adam(learning_rate=base_learning_rate),
    loss=tf.keras.losses.BinaryCrossentropy(),
    metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.5, name="accuracy")],
)
print("trainable variables:", len(model.trainable_variables))
initial_epochs = 3
history = model.fit(train_dataset, epochs=initial_epochs, validation_data=validation_dataset)

base_model.trainable = True
for layer in base_model.layers[:3]:
    layer.trainable = False
model.compile(
    loss=tf.keras.losses.BinaryCrossentropy(),
    optimizer=tf.keras.optimizers.RMSprop(learning_rate=base_learning_rate / 10),
    metrics=[tf.keras.metrics.BinaryAccuracy(threshold=0.5, name="accuracy")],
)
print("trainable variables:", len(model.trainable_variables))
history_fine = model.fit(
    train_dataset,
    epochs=initial_epochs + 2,
    initial_epoch=len(history.epoch),
    validation_data=validation_dataset,
)
loss, accuracy = model.evaluate(validation_dataset, verbose=0)
print("Validation accuracy :", accuracy)
with open("history.json", "w") as file:
    json.dump({"frozen": history.history, "fine-tuned": history_fine.history}, file)
