"""A GAN in the older style: train_on_batch of a discriminator and of the stacked model, in a loop."""

import numpy as np
from keras import utils
from keras.layers import Dense, Input, LeakyReLU
from keras.models import Model, Sequential
from keras.optimizers import Adam


class GAN:
    def __init__(self):
        self.latent_dim = 5
        self.discriminator = self.build_discriminator()
        self.discriminator.compile(loss="binary_crossentropy", optimizer=Adam(0.002, 0.5), metrics=["accuracy"])
        self.generator = self.build_generator()
        z = Input(shape=(self.latent_dim,))
        judge = self.build_discriminator()
        judge.trainable = False
        self.judge = judge
        self.combined = Model(z, judge(self.generator(z)))
        self.combined.compile(loss="binary_crossentropy", optimizer=Adam(0.002, 0.5))

    def build_generator(self):
        return Sequential([Input((self.latent_dim,)), Dense(32), LeakyReLU(negative_slope=0.2), Dense(2)])

    def build_discriminator(self):
        return Sequential([Input((2,)), Dense(32), LeakyReLU(negative_slope=0.2), Dense(1, activation="sigmoid")])

    def train(self, epochs, batch_size=64, sample_interval=10):
        angles = np.random.uniform(0, 2 * np.pi, 1000)
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        valid = np.ones((batch_size, 1))
        fake = np.zeros((batch_size, 1))
        for epoch in range(epochs):
            points = circle[np.random.randint(0, circle.shape[0], batch_size)]
            noise = np.random.normal(0, 1, (batch_size, self.latent_dim))
            generated = self.generator.predict_on_batch(noise)
            self.discriminator.reset_metrics()
            d_loss_real = self.discriminator.train_on_batch(points, valid)
            d_loss_fake = self.discriminator.train_on_batch(generated, fake)
            d_loss = 0.5 * np.add(d_loss_real, d_loss_fake)
            self.judge.set_weights(self.discriminator.get_weights())
            noise = np.random.normal(0, 1, (batch_size, self.latent_dim))
            self.combined.reset_metrics()
            g_loss = self.combined.train_on_batch(noise, valid)
            print(f"{epoch} [D loss: {d_loss[0]:f}, acc.: {100 * d_loss[1]:.2f}%] [G loss: {g_loss:f}]")
            if epoch % sample_interval == 0:
                self.sample_points(epoch)

    def sample_points(self, epoch):
        noise = np.random.normal(0, 1, (100, self.latent_dim))
        radius = np.hypot(*self.generator.predict_on_batch(noise).T)
        print(f"radius after {epoch}: {radius.mean():.3f} +- {radius.std():.3f}")


if __name__ == "__main__":
    utils.set_random_seed(16)
    gan = GAN()
    gan.train(epochs=40)
