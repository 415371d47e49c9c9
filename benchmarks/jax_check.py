"""Checks that the models in JAX are those in Keras and that they train alike.

    KERAS_BACKEND=jax PYTHON-WITH-JAX benchmarks/jax_check.py WORK FILE

``FILE`` has the examples, see ``training_examples.py``. Both begin with Keras' initial weights and train on the same
batches. Their numbers of parameters must be equal, and their losses: of each of the first steps within 1e-3, or
with dropout, whose masks differ, the mean of the last of 200 steps within a tenth.
"""

import argparse
import sys
from pathlib import Path

import jax.numpy as jnp
import keras
import numpy as np

import training_examples
from jax_layers import convolution, shifted_products
from jax_training import Trainer
from jax_works import MODELS
from works import WORKS

STEPS, STEPS_WITH_DROPOUT, LAST = 20, 200, 50


def keras_losses(model: keras.Model, x: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The loss of each step."""
    losses = []
    for batch in rows:
        model.reset_metrics()
        losses.append(model.train_on_batch(x[batch], y[batch])[0])
    return np.array(losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=MODELS)
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    work = WORKS[arguments.work]
    x, y = training_examples.read(arguments.file)
    keras.utils.set_random_seed(0)
    model = training_examples.keras_model(work, x.shape[1:])
    is_random = any(isinstance(layer, keras.layers.Dropout) for layer in model.layers)
    steps = STEPS_WITH_DROPOUT if is_random else STEPS
    rows = np.random.default_rng(1).integers(0, len(x), (steps, work.batch), np.int32)
    weights = [np.asarray(each) for each in model.trainable_variables]
    expected = keras_losses(model, x, y, rows)
    failed = False
    for convolve in (convolution, shifted_products):
        trainer = Trainer(MODELS[arguments.work], x, y, work.batch, convolve)
        state = trainer.state
        shapes = [each.shape for each in state.parameters]
        count = sum(each.size for each in (*state.parameters, *state.averages))
        same = count == model.count_params() and shapes == [each.shape for each in weights]
        trainer.state = state._replace(parameters=[jnp.array(each) for each in weights])
        losses = np.asarray(trainer.train_on(rows)[0])
        if is_random:
            means = losses[-LAST:].mean(), expected[-LAST:].mean()
            difference, limit = abs(means[0] / means[1] - 1), 0.1
        else:
            difference, limit = np.abs(losses - expected).max(), 1e-3
        print(
            f"{arguments.work}, {convolve.__name__}: {count} parameters ({model.count_params()} in Keras),"
            f" loss {losses[0]:.4f} to {losses[-1]:.4f} ({expected[0]:.4f} to {expected[-1]:.4f}),"
            f" difference {difference:.1e}",
            flush=True,
        )
        failed = failed or not same or difference > limit
        if not trainer.convolves:
            break
    sys.exit("they differ" if failed else None)


if __name__ == "__main__":
    main()
