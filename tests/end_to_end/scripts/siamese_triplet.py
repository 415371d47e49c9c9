"""Siamese network with a triplet loss: a model over three images with its own train_step and test_step."""

import json

import numpy as np
import tensorflow as tf
from tensorflow.keras import Model, layers, metrics, optimizers

tf.keras.utils.set_random_seed(21)


def load_triplets(count):
    rng = np.random.default_rng(6)
    prototypes = rng.normal(size=(8, 20))
    kinds = rng.integers(0, 8, count)
    others = (kinds + rng.integers(1, 8, count)) % 8
    noisy = [prototypes[k] + 0.8 * rng.normal(size=(count, 20)) for k in (kinds, kinds, others)]
    return tuple(part.astype("float32") for part in noisy)


dataset = tf.data.Dataset.from_tensor_slices(load_triplets(1000)).shuffle(buffer_size=1024, seed=0)
train_dataset = dataset.take(800).batch(32, drop_remainder=False).prefetch(8)
val_dataset = dataset.skip(800).batch(32, drop_remainder=False).prefetch(8)

embedding = tf.keras.Sequential(
    [layers.Input((20,)), layers.Dense(32, activation="relu"), layers.BatchNormalization(), layers.Dense(8)],
    name="Embedding",
)


class DistanceLayer(layers.Layer):
    def call(self, anchor, positive, negative):
        ap_distance = tf.reduce_sum(tf.square(anchor - positive), -1)
        an_distance = tf.reduce_sum(tf.square(anchor - negative), -1)
        return (ap_distance, an_distance)


anchor_input = layers.Input(name="anchor", shape=(20,))
positive_input = layers.Input(name="positive", shape=(20,))
negative_input = layers.Input(name="negative", shape=(20,))
distances = DistanceLayer()(embedding(anchor_input), embedding(positive_input), embedding(negative_input))
siamese_network = Model(inputs=[anchor_input, positive_input, negative_input], outputs=distances)


class SiameseModel(Model):
    def __init__(self, siamese_network, margin=0.5):
        super().__init__()
        self.siamese_network = siamese_network
        self.margin = margin
        self.loss_tracker = metrics.Mean(name="loss")

    def call(self, inputs):
        return self.siamese_network(inputs)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self._compute_loss(data)
        gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.siamese_network.trainable_weights, strict=True))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def test_step(self, data):
        self.loss_tracker.update_state(self._compute_loss(data))
        return {"loss": self.loss_tracker.result()}

    def _compute_loss(self, data):
        ap_distance, an_distance = self.siamese_network(data)
        return tf.maximum(ap_distance - an_distance + self.margin, 0.0)

    @property
    def metrics(self):
        return [self.loss_tracker]


siamese_model = SiameseModel(siamese_network)
siamese_model.compile(optimizer=optimizers.Adam(0.001))
history = siamese_model.fit(train_dataset, epochs=5, validation_data=val_dataset, verbose=2)

anchor, positive, negative = (embedding(part).numpy() for part in next(iter(val_dataset)))
cosine_similarity = metrics.CosineSimilarity()
print("Positive similarity:", float(cosine_similarity(anchor, positive)) > 0)
print("nearer:", np.mean(((anchor - positive) ** 2).sum(1) < ((anchor - negative) ** 2).sum(1)))
with open("history.json", "w") as file:
    json.dump(history.history, file)
