"""Writes the small files that some commands of docs/what-trains.md read: ``python make_files.py [FOLDER]``."""

import csv
import shutil
import struct
import sys
import wave
import zlib
from pathlib import Path

import numpy as np

import accel_engine.data


def write_png(path, pixels):
    """Write uint8 pixels, ``[height, width]`` or ``[height, width, 3]``."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0))]
    parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, data in parts:
            file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)))


def outlines(rng, kind):
    """Where a disc (0), a square (1) or a cross (2) is in an image of 32x32."""
    rows, columns = np.mgrid[:32, :32]
    down, right = abs(rows - rng.integers(9, 23)), abs(columns - rng.integers(9, 23))
    size = rng.integers(5, 9)
    if kind == 0:
        return down**2 + right**2 < size**2
    return np.maximum(down, right) < size if kind == 1 else (np.minimum(down, right) < 2) & (down + right < size + 2)


def shapes(folder):
    """Photos of discs, squares and crosses, in a folder each."""
    rng = np.random.default_rng(1)
    for kind, name in enumerate(("disc", "square", "cross")):
        for number in range(80):
            image = rng.integers(0, 90, (32, 32, 3))
            image[outlines(rng, kind)] += rng.integers(80, 160, 3)
            write_png(folder / "shapes" / name / f"{number}.png", image.astype(np.uint8))


def masks(folder):
    """Photos, and the class of each of their pixels: 0 for the background, 1 for a disc, 2 for a square."""
    rng = np.random.default_rng(2)
    for number in range(160):
        image, mask = rng.integers(0, 90, (32, 32, 3)), np.zeros((32, 32), np.uint8)
        for kind in (0, 1):
            where = outlines(rng, kind)
            image[where] = rng.integers(120, 250, 3)
            mask[where] = kind + 1
        write_png(folder / "scenes" / "images" / f"{number}.png", image.astype(np.uint8))
        write_png(folder / "scenes" / "masks" / f"{number}.png", mask)


def voices(folder):
    """Half a second of each of three speakers, as WAV files."""
    rng = np.random.default_rng(3)
    time = np.arange(2000) / 4000
    for speaker, pitch in (("ann", 220), ("bob", 110), ("eve", 330)):
        for number in range(40):
            tone = sum(np.sin(2 * np.pi * pitch * part * time * rng.normal(1, 0.02)) / part for part in (1, 2, 3))
            sound = 0.2 * tone + rng.normal(0, 0.05, len(time))
            path = folder / "voices" / speaker / f"{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, 4000, 0, "NONE", ""))
                file.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())


def reviews(folder):
    """Good and bad reviews, as text files with folders for training and validation."""
    rng = np.random.default_rng(4)
    common = ["the", "a", "film", "story", "actors", "scene", "music", "it", "was", "and", "with", "of", "plot", "end"]
    words = {
        "good": ["great", "lovely", "moving", "funny", "bright"],
        "bad": ["dull", "awful", "boring", "weak", "empty"],
    }
    for name, own in words.items():
        for number in range(200):
            text = rng.permutation([*rng.choice(common, 10), *rng.choice(own, 3)])
            path = folder / "reviews" / ("train" if number < 160 else "val") / name / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(" ".join(text) + ".\n")


def story(folder):
    """A text with few words and a strict grammar."""
    rng = np.random.default_rng(5)
    who, what = ["the cat", "the dog", "a bird", "an owl"], ["sees", "hears", "likes", "finds"]
    lines = (f"{rng.choice(who)} {rng.choice(what)} {rng.choice(who)}.\n" for _ in range(1500))
    (folder / "story.txt").write_text("".join(lines))


def write_csv(path, names, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)


def people(folder):
    """Numbers, categories and missing values; the income follows from them."""
    rng = np.random.default_rng(6)
    rows = []
    for _ in range(1500):
        age, hours = rng.integers(18, 70), rng.integers(10, 60)
        job, city = rng.choice(["clerk", "cook", "pilot", "nurse"]), rng.choice(["Lima", "Oslo", "Pune"])
        earned = hours + 15 * (job == "pilot") - 10 * (job == "cook") - abs(age - 45) / 2 + rng.normal(0, 3)
        income = "high" if earned > 30 else "low"
        rows.append([age if rng.random() > 0.03 else "", job, city, hours, income])
    write_csv(folder / "people.csv", ["age", "job", "city", "hours", "income"], rows)


def houses(folder):
    """Four numbers about a house, and its price in thousands."""
    rng = np.random.default_rng(7)
    rooms, age, area, distance = rng.uniform([1, 0, 30, 0], [8, 60, 200, 25], (1500, 4)).T
    price = 20 * rooms - age + 1.5 * area * np.exp(-distance / 20) + rng.normal(0, 5, 1500)
    rows = np.round(np.stack([rooms, age, area, distance, price], axis=1), 2)
    write_csv(folder / "houses.csv", ["rooms", "age", "area", "distance", "price"], rows)


def climate(folder):
    """The weather of each hour: the temperature follows the day, and what it was before."""
    rng = np.random.default_rng(8)
    hours = np.arange(np.datetime64("2024-01-01T00"), np.datetime64("2024-04-01T00"))
    drift = np.cumsum(rng.normal(0, 0.1, len(hours)))
    temperature = 10 + 6 * np.sin(2 * np.pi * np.arange(len(hours)) / 24) + drift - drift.mean()
    pressure = 1013 - 2 * np.gradient(temperature) + rng.normal(0, 0.5, len(hours))
    rows = zip(hours, np.round(temperature, 2), np.round(pressure, 1), strict=True)
    write_csv(folder / "climate.csv", ["hour", "temperature", "pressure"], rows)


def shop(folder):
    """Two named arrays of inputs, and whether a customer bought something."""
    rng = np.random.default_rng(9)
    numbers, shop = rng.normal(size=(2000, 6)).astype("float32"), rng.integers(0, 8, (2000, 1)).astype("int32")
    bought = (numbers[:, :1] * numbers[:, 1:2] + (shop % 2) - 0.5 > 0).astype("float32")
    np.savez(folder / "shop.npz", numbers=numbers, shop=shop, y=bought)


def waves(folder):
    """Sines, saws and squares with noise, ``[n, 64, 1]``."""
    rng = np.random.default_rng(10)
    labels = rng.integers(0, 3, 900)
    phase = np.arange(64) / rng.uniform(10, 20, (900, 1)) + rng.random((900, 1))
    kinds = np.stack([np.sin(2 * np.pi * phase), 2 * (phase % 1) - 1, np.sign(np.sin(2 * np.pi * phase))])
    series = kinds[labels, np.arange(900)] + rng.normal(0, 0.15, (900, 64))
    np.savez(folder / "waves.npz", x=series[..., None].astype("float32"), y=labels)


def digits(folder):
    """The digits that accel-tui includes, for functions that load them."""
    shutil.copy(Path(accel_engine.data.__file__).with_name("digits.npz"), folder)


def base(folder):
    """A convolutional network, trained on the digits 0 to 4, without its last layer."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    with np.load(folder / "digits.npz") as arrays:
        rows = np.flatnonzero(arrays["labels"] < 5)
        x, y = arrays["images"][rows, ..., None] / 16, arrays["labels"][rows]
    convolutions = [layers.Conv2D(filters, 3, padding="same", activation="relu") for filters in (16, 32)]
    features = keras.Sequential(
        [keras.Input((8, 8, 1)), convolutions[0], layers.MaxPooling2D(), convolutions[1], layers.Flatten()]
    )
    model = keras.Sequential([features, layers.Dense(5, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x, y, epochs=3, verbose=0)
    features.save(folder / "base.keras")


FILES = (shapes, masks, voices, reviews, story, people, houses, climate, shop, waves, digits, base)
"""In this order: ``base`` reads the digits."""


def main(folder):
    """Write all files to a folder."""
    for write in FILES:
        write(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
