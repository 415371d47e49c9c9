"""Distributed training with Keras: MirroredStrategy and fit, on two devices."""

import json

import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
print(f"Number of devices: {strategy.num_replicas_in_sync}")

tf.keras.utils.set_random_seed(31)
BUFFER_SIZE = 1000
BATCH_SIZE_PER_REPLICA = 32
BATCH_SIZE = BATCH_SIZE_PER_REPLICA * strategy.num_replicas_in_sync

features = tf.random.stateless_normal((960, 12), seed=(1, 2))
labels = tf.cast(tf.reduce_sum(features[:, :3], axis=1) > 0, tf.int32)
train_dataset = tf.data.Dataset.from_tensor_slices((features[:768], labels[:768])).cache().batch(BATCH_SIZE)
eval_dataset = tf.data.Dataset.from_tensor_slices((features[768:], labels[768:])).batch(BATCH_SIZE)

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((12,)),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dense(2),
        ]
    )
    model.compile(
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=tf.keras.optimizers.Adam(),
        metrics=["accuracy"],
    )


def decay(epoch):
    return 1e-2 if epoch < 2 else 1e-3


class PrintLR(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"\nLearning rate for epoch {epoch + 1} is {model.optimizer.learning_rate.numpy():.4g}")


callbacks = [tf.keras.callbacks.LearningRateScheduler(decay), PrintLR()]
history = model.fit(train_dataset, epochs=4, callbacks=callbacks, validation_data=eval_dataset, verbose=2)
eval_loss, eval_acc = model.evaluate(eval_dataset, verbose=0)
print(f"Eval loss: {eval_loss}, Eval accuracy: {eval_acc}")
with open("history.json", "w") as file:
    json.dump({k: [float(x) for x in v] for k, v in history.history.items()}, file)
