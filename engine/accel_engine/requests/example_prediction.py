"""Predicts rows, arrays, texts, sounds and windows with a trained model, in a separate engine process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import no_progress
from accel_engine.errors import RunError
from accel_engine.process.folder_query import FolderQuery
from accel_engine.process.model_query import check_checkpoint

_RESULTS = "results.npz"


@dataclass(frozen=True, slots=True, eq=False)
class OutputPrediction:
    """The predictions of one output of a model.

    Attributes:
        name: Its name; empty if it is the only one.
        task: What it was trained for, such as ``classification``.
        classes: Names of its classes; empty for numbers.
        columns: Names of its numbers; empty if they have none.
        values: Probabilities ``[examples, classes]`` of classes or labels, or the class of each token or pixel, or
            numbers in their units, of the examples without a problem.
        chances: The probability of each class of a token or pixel; ``None`` for other tasks.
    """

    name: str
    task: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    values: npt.NDArray[Any]
    chances: npt.NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ExamplePredictions:
    """Predictions of a model.

    Attributes:
        name: The run's id, or the file's name.
        step: The step of the checkpoint whose weights it has; 0 for a file.
        kind: What an example of its data is, as in :class:`accel_engine.data.dataset.Dataset`.
        names: The file of each example, empty for a text of the command line, and its name there.
        problems: Why an example has no prediction, by its place in ``names``.
        outputs: The outputs of the model.
        limits: The values of outputs that are black and white in images; ``None`` if they are unknown.
        notes: Notes for the user.
    """

    name: str
    step: int
    kind: str
    names: tuple[tuple[str, str], ...]
    problems: Mapping[int, str]
    outputs: tuple[OutputPrediction, ...]
    limits: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()

    @property
    def readable(self) -> list[int]:
        """The places of the examples that were predicted."""
        return [place for place in range(len(self.names)) if place not in self.problems]


class PredictionQuery(FolderQuery):
    """A request to predict examples with a trained model, on the CPU.

    Args:
        target: The directory of a run, or a ``FILE.keras``.
        files: Files with examples.
        texts: Texts, each an example.
        checkpoint: ``best``, ``last`` or a step; ``auto`` is ``best`` for a run that restores its best weights.
        custom_objects: Python file with the classes of a file's model; empty for none.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run has no checkpoint.
    """

    def __init__(
        self,
        target: Path,
        files: Sequence[Path],
        texts: Sequence[str] = (),
        checkpoint: str = "auto",
        custom_objects: str = "",
    ) -> None:
        if target.is_dir():
            check_checkpoint(target)
        self._given = {str(path.absolute()): str(path) for path in files}
        request = {"files": list(self._given), "texts": list(texts), "checkpoint": checkpoint}
        request["custom_objects"] = str(Path(custom_objects).absolute()) if custom_objects else ""
        arguments = ("--predict", str(target.absolute()))
        super().__init__(arguments, lambda folder: {**request, "results": str(folder / _RESULTS)})

    def predictions(self, on_progress: Callable[[int, int], object] = no_progress) -> ExamplePredictions:
        """Wait for the predictions, at least as long as TensorFlow takes to import.

        Args:
            on_progress: Called now and then with the number of examples done, and of all of a file.

        Raises:
            RunError: The model cannot be used, or the only file has no examples for it; why.
        """
        reply = self.answer(on_progress)
        try:
            with np.load(self.folder / _RESULTS) as arrays:
                outputs = tuple(_output(index, each, arrays) for index, each in enumerate(reply["outputs"]))
        except (OSError, ValueError, KeyError) as error:
            raise RunError(f"the predictions cannot be read: {error}") from error
        given, limits = self._given, reply["limits"]
        return ExamplePredictions(
            reply["name"],
            reply["step"],
            reply["kind"],
            tuple((given.get(path, path), given.get(name, name)) for path, name in reply["names"]),
            {
                int(place): _shortened(problem, reply["names"][int(place)][0], given)
                for place, problem in reply["problems"].items()
            },
            outputs,
            limits and (limits[0], limits[1]),
            tuple(_shortened(note, note.partition(": ")[0], given) for note in reply["notes"]),
        )


def predict_examples(
    target: Path,
    files: Sequence[Path],
    texts: Sequence[str] = (),
    checkpoint: str = "auto",
    custom_objects: str = "",
) -> ExamplePredictions:
    """Predict examples with a trained model, on the CPU: see :class:`PredictionQuery`."""
    with PredictionQuery(target, files, texts, checkpoint, custom_objects) as query:
        return query.predictions()


def _shortened(text: str, path: str, given: Mapping[str, str]) -> str:
    """A text with a path as it was given."""
    return text.replace(path, given[path]) if path in given else text


def _output(index: int, described: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> OutputPrediction:
    values, chances = f"values {index}", f"chances {index}"
    return OutputPrediction(
        described["name"],
        described["task"],
        tuple(described["classes"]),
        tuple(described["columns"]),
        arrays[values] if values in arrays else np.empty((0, len(described["classes"])), np.float32),
        arrays.get(chances),
    )
