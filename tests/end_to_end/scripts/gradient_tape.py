"""Writing a training loop from scratch: GradientTape, tf.function, metrics, and a validation after each epoch."""

import argparse
import time

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--learning_rate", type=float, default=1e-2)
FLAGS = parser.parse_args()

keras.utils.set_random_seed(6)
x = np.random.normal(size=(1200, 16)).astype("float32")
y = np.argmax(x @ np.random.normal(size=(16, 4)), axis=1)
train_dataset = tf.data.Dataset.from_tensor_slices((x[:1000], y[:1000])).shuffle(1024, seed=2).batch(FLAGS.batch_size)
val_dataset = tf.data.Dataset.from_tensor_slices((x[1000:], y[1000:])).batch(FLAGS.batch_size)

inputs = keras.Input(shape=(16,), name="digits")
h = keras.layers.Dense(64, activation="relu", name="dense_1")(inputs)
outputs = keras.layers.Dense(4, name="predictions")(h)
model = keras.Model(inputs=inputs, outputs=outputs)

optimizer = keras.optimizers.Adam(learning_rate=FLAGS.learning_rate)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
train_acc_metric = keras.metrics.SparseCategoricalAccuracy()
val_acc_metric = keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss_value = loss_fn(y, logits)
    grads = tape.gradient(loss_value, model.trainable_weights)
    optimizer.apply(grads, model.trainable_weights)
    train_acc_metric.update_state(y, logits)
    return loss_value


@tf.function
def test_step(x, y):
    val_acc_metric.update_state(y, model(x, training=False))


for epoch in range(FLAGS.epochs):
    print(f"\nStart of epoch {epoch}")
    start_time = time.time()
    for step, (x_batch_train, y_batch_train) in enumerate(train_dataset):
        loss_value = train_step(x_batch_train, y_batch_train)
        if step % 4 == 0:
            print(f"Training loss (for one batch) at step {step}: loss={float(loss_value):.4f}")
            print(f"Seen so far: {(step + 1) * FLAGS.batch_size} samples")
    train_acc = train_acc_metric.result()
    print(f"Training acc over epoch: {float(train_acc):.4f}")
    train_acc_metric.reset_state()
    for x_batch_val, y_batch_val in val_dataset:
        test_step(x_batch_val, y_batch_val)
    print(f"Validation acc: {float(val_acc_metric.result()):.4f}")
    val_acc_metric.reset_state()
    print(f"Time taken: {time.time() - start_time:.2f}s")
