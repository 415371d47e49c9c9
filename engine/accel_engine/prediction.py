"""Asking a run's model what images show, by way of an engine process of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine.model_query import ModelQuery


@dataclass(frozen=True, slots=True)
class ClassProbability:
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
        problem: Why it cannot be answer.
    """

    image: str
    choices: tuple[ClassProbability, ...] = ()
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


def predict(directory: Path, images: Sequence[Path], top: int) -> Predictions:
    """Ask the model of a run's last checkpoint. Takes as long as TensorFlow takes to import, and more.

    Args:
        directory: The run's.
        images: Files.
        top: How many classes to tell of each.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run's model cannot be asked; why.
    """
    request = {"images": [str(path.absolute()) for path in images], "top": top}
    with ModelQuery("--predict", directory, request) as query:
        reply = query.answer()
    return Predictions(
        reply["step"],
        tuple(
            Prediction(
                str(path),
                tuple(ClassProbability(*choice) for choice in answer["choices"]),
                tuple(answer["notes"]),
                answer["problem"],
            )
            for path, answer in zip(images, reply["images"], strict=True)
        ),
    )
