"""Measures how long reading a folder of images takes, compared with `keras.utils.image_dataset_from_directory`.

    python benchmarks/reading.py [--rounds 5] [--small 60000] [--jpegs 50000]

Reads grey PNG files of 28x28, 5,000 by default, 500 colour JPEG files of 500x400, and with --jpegs small ones of
128x96: once as a run reads a dataset that fits in memory, once lazily in batches of 32 in random order as it reads a
larger one, and once by iterating over Keras' dataset with its defaults. Files are in the page cache. All take turns in
one process, after a first round that is not counted.
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

from accel_engine import data
from accel_engine.data import dataset as dataset_module

BATCH = 32
MEMORY_SHARE = dataset_module.MEMORY_SHARE


def write_photo(path: Path, generator: np.random.Generator, height: int, width: int) -> None:
    """Write smoothed noise as a JPEG file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = tf.image.resize(generator.integers(0, 256, (height // 10, width // 10, 3)), (height, width), "bicubic")
    path.write_bytes(tf.io.encode_jpeg(tf.cast(tf.clip_by_value(noise, 0, 255), tf.uint8), quality=90).numpy())


def write_images(root: Path, small: int, jpegs: int) -> None:
    """Write noise as small PNG files, and smoothed noise as photos and small JPEG files."""
    generator = np.random.default_rng(0)
    for index in range(small):
        path = root / "small" / str(index % 10) / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tf.io.encode_png(generator.integers(0, 256, (28, 28, 1)).astype(np.uint8)).numpy())
    for index in range(500):
        write_photo(root / "photos" / str(index % 5) / f"{index}.jpg", generator, 400, 500)
    for index in range(jpegs):
        write_photo(root / "jpegs" / str(index % 10) / f"{index}.jpg", generator, 96, 128)


def read_in_memory(folder: Path, size: str) -> int:
    dataset_module.MEMORY_SHARE = MEMORY_SHARE
    dataset = data.load(str(folder), data.DataOptions(image_size=size, split="none"))
    assert dataset.train.in_memory
    return len(dataset.train)


def read_lazily(folder: Path, size: str) -> int:
    dataset_module.MEMORY_SHARE = 0.0
    train = data.load(str(folder), data.DataOptions(image_size=size, split="none")).train
    rows = np.random.default_rng(0).permutation(len(train))
    return sum(len(train.take(rows[first : first + BATCH]).targets) for first in range(0, len(rows), BATCH))


def read_with_keras(folder: Path, size: str) -> int:
    height, width = map(int, size.split("x"))
    mode = "grayscale" if folder.name == "small" else "rgb"
    dataset = keras.utils.image_dataset_from_directory(
        folder, image_size=(height, width), color_mode=mode, batch_size=BATCH, verbose=False
    )
    return sum(len(labels) for _, labels in dataset)


def seconds(read: Callable[[Path, str], int], folder: Path, size: str, images: int) -> tuple[float, float]:
    """Seconds that passed, and of processor time of all threads."""
    began, used = time.perf_counter(), time.process_time()
    assert read(folder, size) == images
    return time.perf_counter() - began, time.process_time() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", type=int, default=5000, help="number of small images")
    parser.add_argument("--jpegs", type=int, default=0, help="number of small JPEG files")
    arguments = parser.parse_args()
    ways = (read_in_memory, read_lazily, read_with_keras)
    print(f"Python {platform.python_version()}, {os.cpu_count()} logical CPUs, {time.strftime('%Y-%m-%d')}")
    print("| images | seconds | into memory | lazily | Keras | Keras / into memory | Keras / lazily |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="accel-tui-benchmark-") as directory:
        root = Path(directory)
        write_images(root, arguments.small, arguments.jpegs)
        for name, size, images in (
            ("small", "28x28", arguments.small),
            ("photos", "400x500", 500),
            ("photos", "96x96", 500),
            *([("jpegs", "64x64", arguments.jpegs)] if arguments.jpegs else []),
        ):
            rounds = [[seconds(way, root / name, size, images) for way in ways] for _ in range(arguments.rounds + 1)][
                1:
            ]
            for kind, label in enumerate(("passed", "of processors")):
                times = [[each[kind] for each in measured] for measured in rounds]
                medians = [f"{statistics.median(values):.2f}" for values in zip(*times, strict=True)]
                ratios = [[keras_time / ours for *both, keras_time in times for ours in [both[way]]] for way in (0, 1)]
                cells = [f"{statistics.median(each):.2f} ({min(each):.2f}-{max(each):.2f})" for each in ratios]
                print(f"| {images:,} {name} to {size} | {label} | {' | '.join([*medians, *cells])} |", flush=True)


if __name__ == "__main__":
    main()
