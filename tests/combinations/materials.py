"""Tiny data of every kind, and examples of it to predict."""

import csv
import wave
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.image_files import encode_png
from accel_engine.plan import DEFAULTS
from engine.training import task_models

N = 200
"""Examples: 160 to train on, in 20 batches of 8, and 40 to validate with."""

LAYERS = """
import keras

@keras.saving.register_keras_serializable("combinations")
class Doubled(keras.layers.Layer):
    def call(self, x):
        return 2.0 * x

def scaled(scale):
    return lambda x: scale * x
"""
"""Custom objects of a model's file."""

STREAM = """
import numpy as np
import tensorflow as tf

def load():
    x = np.random.default_rng(0).normal(size=(200, 6)).astype("float32")
    y = (x.sum(1) > 0).astype("int32")
    every = tf.data.Dataset.from_tensor_slices((x, y))
    return {"train": every.take(160).batch(8), "validation": every.skip(160).batch(8), "class_names": ["low", "high"]}
"""
"""Data that cannot be read by row."""


@dataclass(frozen=True)
class Material:
    """Data of a kind.

    Attributes:
        fields: The plan's fields for it.
        predict: The words of ``accel-tui predict RUN`` for two examples of it; none if no file can have them.
    """

    fields: dict[str, Any]
    predict: tuple[str, ...]


Make = Callable[[Path], Material]

MATERIALS: dict[str, Make] = {}
"""What makes data of a kind in an empty folder, by the name of the kind."""


def _material(make: Make) -> Make:
    MATERIALS[make.__name__] = make
    return make


def _saved(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


def _pixels(*shape: int) -> Any:
    return _rng().integers(0, 256, shape, np.uint8)


@_material
def images(folder: Path) -> Material:
    """Grey images of three classes, as arrays."""
    x = _pixels(N, 8, 8, 1)
    labels = np.arange(N) % 3
    data = _saved(folder / "images.npz", x=x, y=labels)
    return Material({"data": data, "model": "mlp"}, (_saved(folder / "new.npz", x=x[:2]),))


@_material
def photos(folder: Path) -> Material:
    """Coloured images of 32 pixels, as arrays."""
    x = _pixels(N, 32, 32, 3)
    data = _saved(folder / "photos.npz", x=x, y=np.arange(N) % 3)
    return Material({"data": data, "model": "cnn"}, (_saved(folder / "new.npz", x=x[:2]),))


@_material
def large_photos(folder: Path) -> Material:
    """Coloured images of 75 pixels, which the largest networks need, as arrays."""
    x = _pixels(40, 75, 75, 3)
    data = _saved(folder / "photos.npz", x=x, y=np.arange(40) % 3)
    return Material({"data": data, "model": "cnn"}, (_saved(folder / "new.npz", x=x[:2]),))


@_material
def image_folder(folder: Path) -> Material:
    """Files of images, in a folder for each of two classes."""
    for number, pixels in enumerate(_pixels(N, 12, 12, 1)):
        path = folder / "pictures" / ("left", "right")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_png(pixels))
    return Material({"data": str(folder / "pictures"), "model": "mlp"}, (str(folder / "pictures" / "left" / "0.png"),))


@_material
def drawn(folder: Path) -> Material:
    """Images that the program makes itself."""
    path = folder / "new.png"
    path.write_bytes(encode_png(_pixels(8, 8, 1)))
    own = {"validation_split": DEFAULTS["validation_split"]}
    return Material({"data": "synthetic:8x8x1:6:200", "model": "mlp", **own}, (str(path),))


@_material
def masks(folder: Path) -> Material:
    """Images with a class for each pixel, as arrays."""
    x = _pixels(N, 8, 8, 1)
    data = _saved(folder / "masks.npz", x=x, y=(x[..., 0] > 127).astype(np.uint8))
    return Material({"data": data, "model": "unet"}, (_saved(folder / "new.npz", x=x[:2]),))


@_material
def columns(folder: Path) -> Material:
    """Numbers of two classes, as arrays."""
    x = _rng().normal(0, 1, (N, 5)).astype(np.float32)
    data = _saved(folder / "columns.npz", x=x, y=np.arange(N) % 2)
    return Material({"data": data, "model": "mlp"}, (_saved(folder / "new.npz", x=x[:2]),))


@_material
def numbers(folder: Path) -> Material:
    """Numbers to predict from numbers, as arrays."""
    x = _rng().normal(0, 1, (N, 5)).astype(np.float32)
    data = _saved(folder / "numbers.npz", x=x, y=np.abs(x.sum(1, keepdims=True)) + 1)
    return Material({"data": data, "model": "mlp"}, (_saved(folder / "new.npz", x=x[:2]),))


@_material
def labels(folder: Path) -> Material:
    """Several labels for each example, as arrays."""
    x = _rng().normal(0, 1, (N, 5)).astype(np.float32)
    data = _saved(folder / "labels.npz", x=x, y=(x[:, :3] > 0).astype(np.float32))
    return Material({"data": data, "model": "mlp"}, (_saved(folder / "new.npz", x=x[:2]),))


@_material
def table(folder: Path) -> Material:
    """A table with numbers, categories, dates, gaps, and a column that says which rows validate."""
    rows = [
        {
            "id": 1000 + row,
            "area": "" if row % 9 == 4 else 40 + row,
            "city": ("Bonn", "Trier", "Ulm")[row % 3],
            "zip": 53000 + row % 2,
            "built": f"20{10 + row % 10}-03-0{1 + row % 9}",
            "part": "validation" if row % 5 == 4 else "train",
            "price": 100.5 + 3 * row,
        }
        for row in range(N)
    ]
    for name, written in (("houses.csv", rows), ("new.csv", rows[:2])):
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(written)
    fields = {"data": str(folder / "houses.csv"), "model": "tabular", "target": ("price",)}
    return Material(fields, (str(folder / "new.csv"),))


@_material
def series(folder: Path) -> Material:
    """Readings of two stations, in the order of time."""
    rng = _rng()
    with (folder / "climate.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("hour", "station", "wind", "warmth"))
        for hour in range(120):
            for station in ("north", "south"):
                writer.writerow((hour, station, rng.normal(5, 1), 20 + rng.normal(0, 3)))
    fields = {
        "data": str(folder / "climate.csv"),
        "model": "tcn",
        "time": "hour",
        "group": "station",
        "target": ("warmth",),
        "window": 5,
        "horizon": 2,
    }
    return Material(fields, (str(folder / "climate.csv"),))


@_material
def sequences(folder: Path) -> Material:
    """Sequences of two classes, as arrays."""
    x = _rng().normal(0, 1, (N, 12, 3)).astype(np.float32)
    data = _saved(folder / "sensor.npz", x=x, y=np.arange(N) % 2)
    return Material({"data": data, "model": "tcn"}, (_saved(folder / "new.npz", x=x[:2]),))


@_material
def sounds(folder: Path) -> Material:
    """Sounds of two speakers, as files."""
    for number, values in enumerate(_rng().normal(0, 3000, (N, 900)).astype("<i2")):
        path = folder / "voices" / ("ann", "bob")[number % 2] / f"{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 1000, 0, "NONE", ""))
            file.writeframes(values.tobytes())
    return Material({"data": str(folder / "voices"), "model": "sound-cnn"}, (str(folder / "voices" / "ann" / "0.wav"),))


@_material
def reviews(folder: Path) -> Material:
    """Texts of two classes, as files."""
    for number in range(N):
        name, word = (("good", "fine"), ("bad", "poor"))[number % 2]
        path = folder / "reviews" / name / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"a {word} film, {word} indeed ({number})")
    return Material({"data": str(folder / "reviews"), "model": "bag-of-words"}, ("--text", "fine", "--text", "poor"))


@_material
def story(folder: Path) -> Material:
    """A text whose next characters are predicted."""
    path = folder / "story.txt"
    path.write_text("to be or not to be, that is the question. " * 12)
    return Material(
        {"data": str(path), "model": "gpt", "window": 8, "batch_size": 2}, ("--prompt", "to be", "--tokens", "4")
    )


@_material
def stream(folder: Path) -> Material:
    """Batches that the user's function makes."""
    path = folder / "stream.py"
    path.write_text(STREAM)
    new = _saved(folder / "new.npz", x=_rng().normal(size=(2, 6)).astype(np.float32))
    return Material({"data": f"{path}:load", "model": "mlp", "task": "classification"}, (new,))


def of_task(task: str, folder: Path) -> Material:
    """The data of a compiled model of a task; see :mod:`engine.training.task_models`."""
    inputs = getattr(task_models, f"{task}_data")()["train"][0]
    if isinstance(inputs, tuple):
        inputs = {f"input_{number}": values for number, values in enumerate(inputs)}
    named = inputs if isinstance(inputs, dict) else {"x": inputs}
    new = _saved(folder / "new.npz", **{name: values[:2] for name, values in named.items()})
    source = Path(task_models.__file__)
    return Material({"model": f"{source}:{task}_model", "data": f"{source}:{task}_data", "batch_size": 12}, (new,))


def user_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Files of a user that fields name: the text in fields that stands for one, and its path.

    In a process that has chosen its devices: this makes models.
    """
    import keras

    (folder / "layers.py").write_text(LAYERS)
    yield "LAYERS", str(folder / "layers.py")

    @keras.saving.register_keras_serializable("combinations")
    class Doubled(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return 2.0 * x

    def save(name: str, layer: Any) -> str:
        model = keras.Sequential(
            [keras.Input((8, 8, 1)), keras.layers.Flatten(), layer, keras.layers.Dense(3, activation="softmax")]
        )
        model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.save(folder / name)
        return str(folder / name)

    yield "CUSTOM", save("custom.keras", Doubled())
    yield "LAMBDA", save("lambda.keras", keras.layers.Lambda(lambda x: 2.0 * x))
    flat = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Flatten(),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    flat.save(folder / "weights.keras")
    yield "WEIGHTS", str(folder / "weights.keras")
    rng = _rng()
    other = _saved(folder / "others.npz", x=rng.integers(0, 256, (8, 8, 8, 1), np.uint8), y=np.arange(8) % 3)
    yield "OTHERS", other
