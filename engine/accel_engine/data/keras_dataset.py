"""The datasets that ``keras.datasets`` fetches over the network once and keeps in Keras' cache."""

import contextlib
import fcntl
import os
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from accel_engine.data.arrays import from_arrays
from accel_engine.data.dataset import Dataset
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.errors import DataError

DOWNLOAD_TIMEOUT = 20.0
"""Seconds that the network may be silent."""

_CLASS_NAMES = {
    "fashion_mnist": (
        "T-shirt/top",
        "trouser",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle boot",
    ),
    "cifar10": ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
}


def read(entry: DatasetEntry, *, image_size: str | None, seed: int) -> Dataset:
    """Read a dataset from the cache, or download it.

    Raises:
        DataError: It is not in the cache and the network cannot be reached, or the cached file is broken.
    """
    del image_size
    source = import_module(f"keras.datasets.{entry.name}")
    try:
        # Keras prints its progress; standard output is not the engine's to write to.
        with contextlib.redirect_stdout(sys.stderr), _bounded_wait(), _alone():
            (x_train, y_train), (x_test, y_test) = source.load_data()
    except Exception as error:
        if "URL fetch failure" in str(error) or isinstance(error, TimeoutError):
            raise DataError(
                f"{entry.name} is not in the cache at {_cache()} and could not be downloaded: it needs the network "
                f"once. digits and synthetic need none. ({error})"
            ) from error
        raise DataError(
            f"{entry.name} in the cache at {_cache()} cannot be read; delete it there to download it anew. "
            f"({type(error).__name__}: {error})"
        ) from error
    arrays = {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}
    return from_arrays(entry.name, arrays, seed, _CLASS_NAMES.get(entry.name, ()), images=True)


def _cache() -> Path:
    return Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser() / "datasets"


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let one process of this machine at a time look into the cache and download: others would read half a file."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # a home that cannot be written to, or has no locks
            _cache().mkdir(parents=True, exist_ok=True)
            fcntl.flock(held.enter_context((_cache() / ".accel-tui-lock").open("w")), fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _bounded_wait() -> Iterator[None]:
    """Make a network that swallows packets an error instead of a wait without end."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
