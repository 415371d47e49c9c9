"""A multilayer perceptron in pure JAX: parameters in a list, grad, jit and a plain loop."""

import argparse
import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, random


def init_random_params(scale, layer_sizes, key):
    params = []
    for m, n in itertools.pairwise(layer_sizes):
        key, w_key, b_key = random.split(key, 3)
        params.append((scale * random.normal(w_key, (m, n)), scale * random.normal(b_key, (n,))))
    return params


def predict(params, inputs):
    activations = inputs
    for w, b in params[:-1]:
        activations = jnp.tanh(jnp.dot(activations, w) + b)
    final_w, final_b = params[-1]
    logits = jnp.dot(activations, final_w) + final_b
    return logits - jax.scipy.special.logsumexp(logits, axis=1, keepdims=True)


def loss(params, batch):
    inputs, targets = batch
    return -jnp.mean(jnp.sum(predict(params, inputs) * targets, axis=1))


def accuracy(params, batch):
    inputs, targets = batch
    return jnp.mean(jnp.argmax(predict(params, inputs), axis=1) == jnp.argmax(targets, axis=1))


@jit
def update(params, batch, step_size):
    grads = grad(loss)(params, batch)
    return [(w - step_size * dw, b - step_size * db) for (w, b), (dw, db) in zip(params, grads, strict=True)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-epochs", type=int, default=5)
    parser.add_argument("--step-size", type=float, default=0.5)
    args = parser.parse_args()

    rng = np.random.RandomState(0)
    x = rng.randn(1000, 10)
    y = np.eye(3)[np.digitize(x[:, 0] + x[:, 1] ** 2, [0.0, 1.5])]
    train, test = (x[:800], y[:800]), (x[800:], y[800:])
    params = init_random_params(0.1, [10, 32, 3], random.key(0))
    for epoch in range(args.num_epochs):
        start_time = time.time()
        perm = rng.permutation(800)
        for i in range(0, 800, 50):
            index = perm[i : i + 50]
            params = update(params, (train[0][index], train[1][index]), args.step_size)
        epoch_time = time.time() - start_time
        print(f"Epoch {epoch} in {epoch_time:0.2f} sec")
        print(f"Training set loss={loss(params, train):.6f} accuracy={accuracy(params, train):.4f}")
        print(f"Test set accuracy {accuracy(params, test):.4f}")


if __name__ == "__main__":
    main()
