"""WGAN-GP overriding `Model.train_step`: several critic steps for each generator step, a gradient penalty."""

import json

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(2)

noise_dim = 4


def swiss_roll(count):
    rng = np.random.default_rng(9)
    t = 1.5 * np.pi * (1 + 2 * rng.random(count))
    return (np.stack([t * np.cos(t), t * np.sin(t)], axis=1) / 10 + 0.02 * rng.normal(size=(count, 2))).astype(
        "float32"
    )


def get_mlp(name, inputs, outputs):
    return keras.Sequential(
        [
            keras.Input(shape=(inputs,)),
            keras.layers.Dense(32, activation="leaky_relu"),
            keras.layers.Dense(32, activation="leaky_relu"),
            keras.layers.Dense(outputs),
        ],
        name=name,
    )


class WGAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim, discriminator_extra_steps=3, gp_weight=10.0):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.latent_dim = latent_dim
        self.d_steps = discriminator_extra_steps
        self.gp_weight = gp_weight

    def compile(self, d_optimizer, g_optimizer):
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer

    def gradient_penalty(self, batch_size, real, fake):
        alpha = tf.random.uniform([batch_size, 1], 0.0, 1.0)
        interpolated = real + alpha * (fake - real)
        with tf.GradientTape() as gp_tape:
            gp_tape.watch(interpolated)
            pred = self.discriminator(interpolated, training=True)
        grads = gp_tape.gradient(pred, [interpolated])[0]
        norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=[1]) + 1e-12)
        return tf.reduce_mean((norm - 1.0) ** 2)

    def train_step(self, real):
        if isinstance(real, tuple):
            real = real[0]
        batch_size = tf.shape(real)[0]
        for _ in range(self.d_steps):
            latent = tf.random.normal(shape=(batch_size, self.latent_dim))
            with tf.GradientTape() as tape:
                fake = self.generator(latent, training=True)
                fake_logits = self.discriminator(fake, training=True)
                real_logits = self.discriminator(real, training=True)
                d_cost = tf.reduce_mean(fake_logits) - tf.reduce_mean(real_logits)
                d_loss = d_cost + self.gradient_penalty(batch_size, real, fake) * self.gp_weight
            d_gradient = tape.gradient(d_loss, self.discriminator.trainable_variables)
            self.d_optimizer.apply_gradients(zip(d_gradient, self.discriminator.trainable_variables, strict=True))
        latent = tf.random.normal(shape=(batch_size, self.latent_dim))
        with tf.GradientTape() as tape:
            g_loss = -tf.reduce_mean(self.discriminator(self.generator(latent, training=True), training=True))
        gen_gradient = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(gen_gradient, self.generator.trainable_variables, strict=True))
        return {"d_loss": d_loss, "g_loss": g_loss}


wgan = WGAN(get_mlp("discriminator", 2, 1), get_mlp("generator", noise_dim, 2), latent_dim=noise_dim)
wgan.compile(
    d_optimizer=keras.optimizers.Adam(learning_rate=0.001, beta_1=0.5, beta_2=0.9),
    g_optimizer=keras.optimizers.Adam(learning_rate=0.001, beta_1=0.5, beta_2=0.9),
)
history = wgan.fit(swiss_roll(1000), batch_size=100, epochs=4, verbose=2)
samples = wgan.generator(tf.random.normal((500, noise_dim)))
print("spread of the samples:", np.round(np.std(samples, axis=0), 2))
with open("history.json", "w") as file:
    json.dump({name: [float(value) for value in values] for name, values in history.history.items()}, file)
