"""Reads the datasets of ``keras.datasets``, which Keras downloads once to its cache."""

import contextlib
import fcntl
import os
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from accel_engine.data.arrays import make_dataset
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.data.structure import Batch
from accel_engine.errors import DataError
from accel_engine.user_paths import user_path

DOWNLOAD_TIMEOUT = 20.0
"""Network timeout in seconds."""

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


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read a dataset from the cache, or download it.

    Raises:
        DataError: It is not in the cache and cannot be downloaded, or the cached file is damaged.
    """
    del progress
    source = import_module(f"keras.datasets.{entry.name}")
    try:
        # Keras prints its progress to standard output, which is reserved for JSON lines.
        with contextlib.redirect_stdout(sys.stderr), _network_timeout(), _cache_lock():
            (x_train, y_train), (x_test, y_test) = source.load_data()
    except Exception as error:
        if "URL fetch failure" in str(error) or isinstance(error, TimeoutError):
            raise DataError(
                f"{entry.name} is not in the cache {_cache()} and could not be downloaded; check the network, or use "
                f"digits or synthetic, which need no download ({error})"
            ) from error
        raise DataError(
            f"cannot read {entry.name} in the cache {_cache()}; delete it there to download it again "
            f"({type(error).__name__}: {error})"
        ) from error
    parts = {"train": Batch(x_train, y_train), "validation": Batch(x_test, y_test)}
    return make_dataset(entry.name, parts, options, class_names=_CLASS_NAMES.get(entry.name, ()), images=True)


def _cache() -> Path:
    return user_path(os.environ.get("KERAS_HOME", "~/.keras")) / "datasets"


@contextlib.contextmanager
def _cache_lock() -> Iterator[None]:
    """Lock the cache: another process could read a file while it is downloaded."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # the home cannot be written, or has no locks
            _cache().mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((_cache() / ".accel-tui-lock").open("w")), fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _network_timeout() -> Iterator[None]:
    """Set the default socket timeout, which Keras' download uses."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
