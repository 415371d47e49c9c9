"""Asking a run's model what images show, by way of an engine process of its own."""

import json
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine.errors import RunError
from accel_engine.launch import spawn
from accel_engine.run import RunReader
from accel_engine.run.home import latest_checkpoint

ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TPU_LOAD_LIBRARY": "0"}
"""What keeps the process off accelerators, where the run may still be training."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A class that an image may show.

    Attributes:
        label: Its name.
        probability: What the model gives to it.
    """

    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model says of an image.

    Attributes:
        image: Its file.
        choices: The likeliest classes, the likeliest first; none where there is a problem.
        notes: What was done to the image so that the model can take it.
        problem: Why it cannot be told.
    """

    image: str
    choices: tuple[Choice, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a run's model says of images.

    Attributes:
        step: Steps that it had taken, at its last checkpoint.
        images: One for each image, in the order that was asked for.
    """

    step: int
    images: tuple[Prediction, ...]


def predict(directory: Path, images: Sequence[Path], most: int) -> Predictions:
    """Ask the model of a run's last checkpoint. Takes as long as TensorFlow takes to import, and more.

    Args:
        directory: The run's.
        images: Files.
        most: How many classes to tell of each.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run's model cannot be asked; why.
    """
    with closing(RunReader(directory)) as reader:
        if reader.info().script:
            raise RunError(f"run {directory.name} is a script's, which alone keeps its model: there are no checkpoints")
    if not latest_checkpoint(directory):
        raise RunError(f"run {directory.name} has no checkpoint yet, so there is no model to ask")
    reply = _ask("--predict", directory, {"images": [str(path.absolute()) for path in images], "most": most})
    return Predictions(
        reply["step"],
        tuple(
            Prediction(
                str(path),
                tuple(Choice(*choice) for choice in told["choices"]),
                tuple(told["notes"]),
                told["problem"],
            )
            for path, told in zip(images, reply["images"], strict=True)
        ),
    )


def _ask(work: str, directory: Path, request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+", prefix="accel-tui-engine-") as log:
        process = spawn(work, str(directory), stderr=log, environment=ON_THE_CPU)
        try:
            said, _ = process.communicate(json.dumps(request))
        except BaseException:  # whoever asked has gone away
            process.kill()
            process.wait()
            raise
        if not said:
            log.seek(0)
            words = log.read().strip().splitlines()
            raise RunError(f"the engine ended: {words[-1].strip()}" if words else "the engine ended without a word")
    reply: dict[str, Any] = json.loads(said)
    if problem := reply.get("problem"):
        raise RunError(problem)
    return reply
