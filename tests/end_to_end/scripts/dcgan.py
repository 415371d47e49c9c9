"""DCGAN with two optimizers, as a Model with its own train_step, and a callback that samples images."""

import json

import keras
import numpy as np
import tensorflow as tf
from keras import layers

LATENT_DIM = 16

keras.utils.set_random_seed(7)


def rings(count):
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[0:8, 0:8] - 3.5
    radius = rng.uniform(1.5, 3.5, (count, 1, 1))
    return np.exp(-((np.hypot(rows, columns) - radius) ** 2))[..., None].astype("float32") * 2 - 1


discriminator = keras.Sequential(
    [
        keras.Input(shape=(8, 8, 1)),
        layers.Conv2D(16, kernel_size=4, strides=2, padding="same"),
        layers.LeakyReLU(negative_slope=0.2),
        layers.Flatten(),
        layers.Dropout(0.2),
        layers.Dense(1, activation="sigmoid"),
    ],
    name="discriminator",
)
generator = keras.Sequential(
    [
        keras.Input(shape=(LATENT_DIM,)),
        layers.Dense(4 * 4 * 16),
        layers.Reshape((4, 4, 16)),
        layers.Conv2DTranspose(16, kernel_size=4, strides=2, padding="same"),
        layers.BatchNormalization(),
        layers.LeakyReLU(negative_slope=0.2),
        layers.Conv2D(1, kernel_size=3, padding="same", activation="tanh"),
    ],
    name="generator",
)


class GAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.latent_dim = latent_dim
        self.seed_generator = keras.random.SeedGenerator(1337)

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.loss_fn = loss_fn
        self.d_loss_metric = keras.metrics.Mean(name="d_loss")
        self.g_loss_metric = keras.metrics.Mean(name="g_loss")

    @property
    def metrics(self):
        return [self.d_loss_metric, self.g_loss_metric]

    def train_step(self, real_images):
        batch_size = tf.shape(real_images)[0]
        noise = keras.random.normal(shape=(batch_size, self.latent_dim), seed=self.seed_generator)
        combined = tf.concat([self.generator(noise), real_images], axis=0)
        labels = tf.concat([tf.ones((batch_size, 1)), tf.zeros((batch_size, 1))], axis=0)
        labels += 0.05 * keras.random.uniform(shape=tf.shape(labels), seed=self.seed_generator)

        with tf.GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.discriminator(combined))
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights, strict=True))

        noise = keras.random.normal(shape=(batch_size, self.latent_dim), seed=self.seed_generator)
        with tf.GradientTape() as tape:
            g_loss = self.loss_fn(tf.zeros((batch_size, 1)), self.discriminator(self.generator(noise)))
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights, strict=True))

        self.d_loss_metric.update_state(d_loss)
        self.g_loss_metric.update_state(g_loss)
        return {"d_loss": self.d_loss_metric.result(), "g_loss": self.g_loss_metric.result()}


class GANMonitor(keras.callbacks.Callback):
    def __init__(self, num_img=3, latent_dim=16):
        self.num_img = num_img
        self.seed_generator = keras.random.SeedGenerator(42)
        self.latent_dim = latent_dim

    def on_epoch_end(self, epoch, logs=None):
        noise = keras.random.normal(shape=(self.num_img, self.latent_dim), seed=self.seed_generator)
        images = self.model.generator(noise).numpy()
        np.save(f"generated_{epoch:03d}.npy", images)
        print(f"epoch {epoch}: d_loss {logs['d_loss']:.4f} g_loss {logs['g_loss']:.4f} mean {images.mean():+.3f}")


dataset = tf.data.Dataset.from_tensor_slices(rings(640)).shuffle(640, seed=1).batch(32)
gan = GAN(discriminator=discriminator, generator=generator, latent_dim=LATENT_DIM)
gan.compile(
    d_optimizer=keras.optimizers.Adam(learning_rate=0.0005),
    g_optimizer=keras.optimizers.Adam(learning_rate=0.0005),
    loss_fn=keras.losses.BinaryCrossentropy(),
)
history = gan.fit(dataset, epochs=3, callbacks=[GANMonitor(latent_dim=LATENT_DIM)], verbose=0)
with open("history.json", "w") as file:
    json.dump(history.history, file)
