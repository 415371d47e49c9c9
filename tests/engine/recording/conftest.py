"""Small models, and what a recorder wrote of their training."""

import math
import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.recording import recorder_thread, run_link, supervisor_address
from accel_engine.run import RunReader
from accel_engine.scripts import recorder_runs
from accel_engine.scripts.listener import Listener
from accel_engine.scripts.recorder_runs import RecorderRuns

ROWS = 104
"""Thirteen batches of 8: the last of 16 is smaller."""


@pytest.fixture(scope="session")
def address() -> str:
    """The address of a supervisor in this process, where tests can replace what it calls."""
    recorder_runs.LINGER_SECONDS = math.inf  # other tests may be between two of recorders
    listener = Listener()
    runs = RecorderRuns(listener)
    threading.Thread(target=runs.serve, args=[os.getpid()], daemon=True).start()
    return listener.address


@pytest.fixture(autouse=True)
def supervised(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no other process to write the runs."""
    monkeypatch.setattr(supervisor_address, "_started_address", address)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the supervisor and for a run's end, however slow this machine is."""
    monkeypatch.setattr(recorder_thread, "END_SECONDS", 120.0)
    monkeypatch.setattr(run_link, "REPLY_SECONDS", 120.0)


def examples() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.normal(size=(ROWS, 4)).astype(np.float32), random.integers(0, 3, ROWS)


def tiny(**compiled: Any) -> keras.Model:
    """A compiled classifier with the same weights every time."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")], name="tiny")
    settings = {"optimizer": keras.optimizers.SGD(0.1), "loss": "sparse_categorical_crossentropy"}
    model.compile(**{**settings, "metrics": ["accuracy"], **compiled})
    return model


class Read:
    """All that a run says."""

    def __init__(self, directory: Path | None) -> None:
        assert directory is not None
        with closing(RunReader(directory)) as reader:
            self.info = reader.info()
            self.update = reader.poll()

    def all(self, kind: type) -> list[Any]:
        return [event for event in self.update.events if isinstance(event, kind)]

    def series(self, name: str) -> np.ndarray:
        """A series over all steps, NaN where a chunk has none of it."""
        missing = [np.full(chunk.count, np.nan, np.float32) for chunk in self.update.chunks]
        chunks = zip(self.update.chunks, missing, strict=True)
        return np.concatenate([chunk.series.get(name, nothing) for chunk, nothing in chunks])

    @property
    def names(self) -> set[str]:
        """The series of what was measured; the learning rate is none."""
        return {name for chunk in self.update.chunks for name in chunk.series} - {"learning_rate"}


@pytest.fixture
def true_losses() -> Callable[..., list[float]]:
    """The loss of every batch of a plain loop over the examples in their order."""

    def losses(batch: int, epochs: int = 1) -> list[float]:
        x, y = examples()
        model = tiny()
        taken = []
        for _ in range(epochs):
            for first in range(0, ROWS, batch):
                taken.append(model.train_on_batch(x[first : first + batch], y[first : first + batch])[0])
                model.reset_metrics()
        return taken

    return losses
