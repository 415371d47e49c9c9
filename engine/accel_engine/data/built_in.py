"""The data that is built in, or that Keras downloads.

The form asks these classes what a plan can say of them before anything is painted: they import NumPy when they load.
"""

import contextlib
import fcntl
import os
import socket
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine.data.data_options import Progress
from accel_engine.data.source import Source
from accel_engine.data.structure import Batch
from accel_engine.errors import DataError
from accel_engine.user_paths import user_path

if TYPE_CHECKING:
    from accel_engine.data.dataset import Dataset


class Digits(Source):
    """The 1,797 handwritten digits that scikit-learn includes, too: 8x8 pixels with 17 shades of grey.

    Test set of "Optical Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (1998), UCI Machine
    Learning Repository, https://doi.org/10.24432/C50P49, licensed under Creative Commons Attribution 4.0
    (CC BY 4.0). ``digits.npz`` holds them unchanged: ``images``, uint8 ``[1797, 8, 8]`` from 0 to 16, and
    ``labels``, uint8 ``[1797]``.
    """

    def load(self, progress: Progress) -> "Dataset":
        """Read the digits; the split does not depend on the seed, so that results are comparable across seeds."""
        import numpy as np

        from accel_engine.data.arrays import make_dataset

        shades = np.rint(np.arange(17) * 255 / 16).astype(np.uint8)  # 0 to 255, the usual range of images
        with files("accel_engine.data").joinpath("digits.npz").open("rb") as file, np.load(file) as arrays:
            images, labels = shades[arrays["images"]][..., np.newaxis], arrays["labels"]
        order = np.random.default_rng(0).permutation(len(labels))
        train, test = np.sort(order[: self.entry.examples]), np.sort(order[self.entry.examples :])
        parts = {"train": Batch(images[train], labels[train]), "validation": Batch(images[test], labels[test])}
        return make_dataset(self.entry.name, parts, self.options, images=True)


class Synthetic(Source):
    """Examples that are made up, see :mod:`accel_engine.data.synthetic`."""

    is_made_up = True

    def load(self, progress: Progress) -> "Dataset":
        """Generate the examples; in memory if they fit, lazily otherwise."""
        from accel_engine.data.synthetic import make

        return make(self.entry, self.options.seed)


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


class KerasDataset(Source):
    """A dataset of ``keras.datasets``, which Keras downloads once to its cache."""

    loads_with_tensorflow = is_downloaded = True

    def load(self, progress: Progress) -> "Dataset":
        """Read the dataset from the cache, or download it.

        Raises:
            DataError: The dataset is not in the cache and cannot be downloaded, or the cached file is damaged.
        """
        from accel_engine.data.arrays import make_dataset

        name = self.entry.name
        source = import_module(f"keras.datasets.{name}")
        try:
            # Keras prints its progress to standard output, which is reserved for JSON lines.
            with contextlib.redirect_stdout(sys.stderr), _network_timeout(), _cache_lock():
                (x_train, y_train), (x_test, y_test) = source.load_data()
        except Exception as error:
            if "URL fetch failure" in str(error) or isinstance(error, TimeoutError):
                raise DataError(
                    f"{name} is not in the cache {_cache()} and could not be downloaded; check the network, or use "
                    f"digits or synthetic, which need no download ({error})"
                ) from error
            raise DataError(
                f"cannot read {name} in the cache {_cache()}; delete it there to download it again "
                f"({type(error).__name__}: {error})"
            ) from error
        parts = {"train": Batch(x_train, y_train), "validation": Batch(x_test, y_test)}
        return make_dataset(name, parts, self.options, class_names=_CLASS_NAMES.get(name, ()), images=True)


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
