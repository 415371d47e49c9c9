"""Predicts the classes of images with a run's model, in a separate engine process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine.launch.model_query import ModelQuery


@dataclass(frozen=True, slots=True)
class ClassProbability:
    """A class and its predicted probability.

    Attributes:
        label: The name of the class.
        probability: The predicted probability, 0 to 1.
    """

    label: str
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for an image.

    Attributes:
        image: The image file.
        choices: The most probable classes, the most probable first; empty if there is a problem.
        notes: How the image was converted for the model.
        problem: Why there is no prediction.
    """

    image: str
    choices: tuple[ClassProbability, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Predictions:
    """The predictions of a run's model.

    Attributes:
        step: The step of the checkpoint whose weights it has.
        images: One for each image, in the given order.
        notes: Newer checkpoints that are damaged, and were not used.
    """

    step: int
    images: tuple[Prediction, ...]
    notes: tuple[str, ...] = ()


def predict(directory: Path, images: Sequence[Path], top: int) -> Predictions:
    """Predict images with a run's last checkpoint. Takes at least as long as importing TensorFlow.

    Args:
        directory: The run's directory.
        images: Image files.
        top: How many of the most probable classes to return for each.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run's model cannot be used; why.
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
        tuple(reply["notes"]),
    )
