"""Trains a work with ``model.fit``, as a process that :mod:`served_side` controls.

    python benchmarks/fit_side.py SIDE WORK [FILE]

``KERAS_BACKEND`` chooses the backend of Keras. ``FILE`` has the examples, for a Python without accel-tui.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from served_side import serve, take_stdout
from works import WORKS, Work

SIDES = ("fit", "tensorboard", "fit-32", "keras-jax")


def prepare(work: Work, file: Path | None) -> tuple[Any, dict[str, Any], int]:
    """A compiled model, what its ``fit`` takes, and the steps of an epoch."""
    import training_examples
    import training_works

    if work.is_stream:
        shape = (training_works.COLUMNS,)
        model = training_examples.keras_model(work, shape)
        return model, {"x": training_works.tabular_stream()}, training_works.ROWS // work.batch
    x, y = training_examples.read(file) if file else training_examples.examples(work)
    model = training_examples.keras_model(work, x.shape[1:])
    return model, {"x": x, "y": y, "batch_size": work.batch}, len(x) // work.batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("file", type=Path, nargs="?")
    arguments = parser.parse_args()
    answers = take_stdout()
    import keras

    keras.utils.set_random_seed(0)
    model, examples, steps = prepare(WORKS[arguments.work], arguments.file)
    model.steps_per_execution = 32 if arguments.side == "fit-32" else 1
    callbacks = []
    if arguments.side == "tensorboard":
        callbacks = [keras.callbacks.TensorBoard(tempfile.mkdtemp(), update_freq="batch")]

    def epoch() -> int:
        model.fit(**examples, verbose=0, callbacks=callbacks)
        return steps

    epoch()
    serve(answers, f"Keras {keras.__version__} on {keras.backend.backend()}", epoch)


if __name__ == "__main__":
    main()
