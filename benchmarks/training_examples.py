"""The examples and the Keras model of a work, for all sides alike.

    python benchmarks/training_examples.py WORK FILE

writes the examples as an ``.npz`` file for a Python without accel-tui.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from works import OWN, WORKS, Work

CLASSES = tuple("0123456789")
"""Names of the classes of synthetic images."""


def examples(work: Work) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, with pixels scaled to 0 to 1 in float32, and targets, in whole batches only; needs accel-tui."""
    from accel_engine import data
    from accel_engine.plan import Plan

    dataset = data.load(work.data, Plan(data=work.data, batch_size=work.batch, split="none").data_options)
    x, y = dataset.train.inputs, dataset.train.targets
    if dataset.value_range.pixels:
        x = x.astype("float32") / 255
    count = len(x) // work.batch * work.batch
    return x[:count], y[:count]


def keras_model(work: Work, shape: tuple[int, ...]) -> Any:
    """The compiled model of a work, for any backend of Keras; needs the sources of accel-tui, but not TensorFlow.

    Args:
        work: The work.
        shape: Shape of an example.
    """
    _, colon, function = work.model.rpartition(":")
    if colon:
        return getattr(import_module(OWN.stem), function)()
    engine = str(Path(__file__).parents[1] / "engine")
    if engine not in sys.path:
        sys.path.append(engine)
    from accel_engine.data.structure import ArraySpec
    from accel_engine.models.data_description import DataDescription

    builder = import_module(f"accel_engine.models.{work.model.replace('-', '_')}")
    model = builder.build(DataDescription(ArraySpec(shape, "float32"), class_names=CLASSES))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def read(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """The examples that :func:`main` has written."""
    with np.load(file) as arrays:
        return arrays["x"], arrays["y"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=[name for name, work in WORKS.items() if not work.is_stream])
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    x, y = examples(WORKS[arguments.work])
    np.savez(arguments.file, x=x, y=y)


if __name__ == "__main__":
    main()
