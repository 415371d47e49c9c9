"""Trains a work in JAX, as a process that :mod:`served_side` controls.

    PYTHON-WITH-JAX benchmarks/jax_side.py WORK FILE

``FILE`` has the examples, see ``training_examples.py``. Before the first turn it tries dispatches of one step and of
about 75 ms, convolutions as XLA's operation and as matrix products, and takes what is fastest.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import training_examples
from jax_layers import convolution, shifted_products
from jax_training import Trainer
from jax_works import MODELS
from served_side import serve, take_stdout
from works import WORKS

DISPATCH_SECONDS = 0.075
"""About how long a dispatch takes."""

TRIAL_SECONDS = 0.5
"""How long each way to train is tried, twice."""


class Dispatches:
    """Dispatches of a number of steps; the results of one are read while the next is computed."""

    def __init__(self, trainer: Trainer, steps: int, description: str) -> None:
        self.description = f"{description}, {steps} steps per dispatch"
        self._trainer, self._steps = trainer, steps
        self._pending = trainer.train(steps)
        self()

    def __call__(self) -> int:
        """Wait for a dispatch; returns its number of steps."""
        done, self._pending = self._pending, self._trainer.train(self._steps)
        for values in done:
            np.asarray(values)
        return self._steps

    def rate(self) -> float:
        """Steps per second, in a trial."""
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < TRIAL_SECONDS:
            done += self()
        return done / (time.perf_counter() - began)


def ways(create: Callable[..., Trainer]) -> list[Dispatches]:
    """The ways to train that may be fastest, compiled."""
    found = []
    for convolve in (convolution, shifted_products):
        trainer = create(convolve=convolve)
        name = convolve.__name__ if trainer.convolves else "no convolutions"
        single = Dispatches(trainer, 1, name)
        scanned = Dispatches(trainer, _steps(trainer, single.rate()), name)
        found += [single, scanned]
        if not trainer.convolves:
            break
    return found


def _steps(trainer: Trainer, rate: float) -> int:
    """How many steps take about :data:`DISPATCH_SECONDS`, if single steps have a rate in steps per second."""
    steps = max(2, round(rate * DISPATCH_SECONDS))
    several = Dispatches(trainer, steps, "")
    return max(2, round(several.rate() * DISPATCH_SECONDS))


def fastest(found: list[Dispatches]) -> Dispatches:
    """The fastest way, by the better of two trials in turns."""
    rates = [max(pair) for pair in zip(*([way.rate() for way in found] for _ in range(2)), strict=True)]
    return found[int(np.argmax(rates))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=MODELS)
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    answers = take_stdout()
    x, y = training_examples.read(arguments.file)

    def create(**options: object) -> Trainer:
        return Trainer(MODELS[arguments.work], x, y, WORKS[arguments.work].batch, **options)

    best = fastest(ways(create))
    serve(answers, f"JAX {jax.__version__} on {jax.default_backend()}, {best.description}", best)


if __name__ == "__main__":
    main()
