"""Scripts for ``advice.py``: a ``fit`` with ``RunRecorder``, and loops with ``Recorder``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import accel_engine
import advice_data


def fit(
    data: Callable[[], advice_data.Arrays],
    model: Callable[..., Any],
    *,
    epochs: int = 5,
    batch: int = 32,
    rate: float | None = None,
    shuffle: bool = True,
    changes: tuple[advice_data.Change, ...] = (),
) -> Callable[[Path], Path]:
    """A script that fits a model."""

    def script(directory: Path) -> Path:
        import keras

        del directory
        keras.utils.set_random_seed(0)
        arrays = data()
        for change in changes:
            arrays = change(arrays)
        x, y = arrays["x_train"], arrays["y_train"]
        built = model(x.shape[1:], int(y.max()) + 1 if y.dtype.kind == "i" else 0)
        if not built.compiled:
            built.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        if rate:
            built.optimizer.learning_rate = rate
        recorder = accel_engine.RunRecorder("fit")
        held_out = (arrays["x_val"], arrays["y_val"])
        built.fit(x, y, batch, epochs, verbose=0, validation_data=held_out, shuffle=shuffle, callbacks=[recorder])
        return Path(recorder.directory)

    return script


def loop(
    losses: Callable[[int, np.random.Generator], float], *, steps: int = 600, per_epoch: int = 100, **others: Any
) -> Callable[[Path], Path]:
    """A loop of one's own that logs a loss, and its validation where ``validation`` gives that by step."""

    def script(directory: Path) -> Path:
        del directory
        rng, validation = np.random.default_rng(0), others.get("validation")
        with accel_engine.Recorder("loop", steps=steps) as run:
            for step in range(steps):
                values = {name: value(step, rng) for name, value in others.items() if name != "validation"}
                run.log(step, loss=losses(step, rng), epoch=step // per_epoch, **values)
                if validation and (step + 1) % per_epoch == 0:
                    run.log(step, val_loss=validation(step, rng))
        return Path(run.directory)

    return script


def linear(rate: float, *, rows: int = 512, steps: int = 400) -> Callable[[Path], Path]:
    """Logistic regression of two classes by gradient descent, written with NumPy."""

    def script(directory: Path) -> Path:
        del directory
        rng = np.random.default_rng(0)
        x = rng.normal(size=(rows, 8))
        y = (x @ rng.normal(size=8) + 0.5 * rng.normal(size=rows) > 0).astype(float)
        weights = np.zeros(8)
        with accel_engine.Recorder("linear", steps=steps) as run:
            for step in range(steps):
                chosen = rng.choice(rows, 32)
                score = x[chosen] @ weights
                chance = 1 / (1 + np.exp(-np.clip(score, -50, 50)))
                found = np.clip(np.where(y[chosen] > 0, chance, 1 - chance), 1e-9, 1)
                right = np.mean((chance > 0.5) == (y[chosen] > 0))
                run.log(step, loss=-np.mean(np.log(found)), accuracy=right, epoch=step // 16)
                weights -= rate * x[chosen].T @ (chance - y[chosen]) / 32
        return Path(run.directory)

    return script


def two_networks(directory: Path) -> Path:
    """The losses of a GAN, which do not fall."""
    del directory
    rng = np.random.default_rng(0)
    with accel_engine.Recorder("gan", steps=500) as run:
        for step in range(500):
            swing = 0.2 * np.sin(step / 40)
            run.log(
                step,
                d_loss=0.6 + swing + 0.05 * rng.normal(),
                g_loss=0.9 - swing + 0.08 * rng.normal(),
                epoch=step // 100,
            )
    return Path(run.directory)
