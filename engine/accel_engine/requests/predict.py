"""Asks a trained model to predict rows, arrays, texts, sounds and windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from accel_engine.inference.output_prediction import OutputPrediction
from accel_engine.plan.options import OptionSpec, option
from accel_engine.requests.protocol.model_reference import CHECKPOINT, DEVICE, check_checkpoint
from accel_engine.requests.protocol.request import ComputeDevice, DeviceRequest, FolderRequest


def _read_text(text: str) -> tuple[str, ...]:
    return (text,) if text.strip() else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionOptions:
    """The options of a prediction: which examples, and how much of them is shown.

    Attributes:
        texts: Texts, each an example.
        path: A file or folder with examples; empty for none. Commands take several, as arguments.
        top: Number of the most probable classes of an example.
        checkpoint: ``auto``, ``best``, ``last`` or a step.
        device: ``auto``, ``cpu`` or a GPU such as ``gpu:0``.
    """

    texts: tuple[str, ...] = option(
        (),
        OptionSpec(
            "A text to predict.",
            tuple,
            label="text",
            hint="a text to predict",
            flags=("--text",),
            metavar="TEXT",
            repeats=True,
            read=_read_text,
        ),
    )
    path: str = option(
        "", OptionSpec("File or folder with the examples.", str, label="examples", hint="a path", read=str)
    )
    top: int = option(3, OptionSpec("Number of classes to show.", int, minimum=1, label="classes", metavar="K"))
    checkpoint: str = option("auto", CHECKPOINT)
    device: str = option("auto", DEVICE)


@dataclass(frozen=True, slots=True, eq=False)
class ExamplePredictions:
    """Predictions of a model.

    Attributes:
        name: The run's id, or the file's name.
        step: The step of the checkpoint whose weights it has; 0 for a file.
        kind: The kind of an example of its data, as in :class:`accel_engine.data.dataset.Dataset`.
        names: The file of each example, empty for a text of the command line, and its name there.
        problems: Why an example has no prediction, by its place in ``names``.
        outputs: The outputs of the model.
        limits: The values of outputs that are black and white in images; ``None`` if they are unknown.
        notes: Notes for the user.
        device: The device that computed them.
    """

    name: str
    step: int
    kind: str
    names: tuple[tuple[str, str], ...]
    problems: Mapping[int, str]
    outputs: tuple[OutputPrediction, ...]
    limits: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    device: ComputeDevice = field(default_factory=ComputeDevice)

    @property
    def readable(self) -> list[int]:
        """The places of the examples that were predicted."""
        return [place for place in range(len(self.names)) if place not in self.problems]


@dataclass(frozen=True, slots=True)
class PredictionRequest(DeviceRequest, FolderRequest[ExamplePredictions]):
    """A request to predict examples with a trained model.

    Attributes:
        target: The directory of a run, or a ``FILE.keras``.
        files: Files with examples.
        texts: Texts, each an example.
        checkpoint: ``best``, ``last`` or a step; ``auto`` is ``best`` for a run that restores its best weights.
        custom_objects: Python file with the classes of a file's model; empty for none.
        folder: Where the folder for the predictions is made; ``None`` for the directory of temporary files.
        wanted_device: ``auto``, ``cpu`` or a GPU such as ``gpu:0``.
        device: See :class:`DeviceRequest`.
    """

    function: ClassVar = "accel_engine.trained.prediction.predict:predict"
    result: ClassVar = ExamplePredictions

    target: Path
    files: tuple[Path, ...] = ()
    texts: tuple[str, ...] = ()
    checkpoint: str = "auto"
    custom_objects: str = ""
    wanted_device: str = "auto"
    device: ComputeDevice = field(default_factory=ComputeDevice, kw_only=True)

    @property
    def model_paths(self) -> tuple[Path, ...]:
        """See :attr:`DeviceRequest.model_paths`."""
        return (self.target,)

    def check(self) -> None:
        """See :meth:`FolderRequest.check`; a run needs a checkpoint."""
        if self.target.is_dir():
            check_checkpoint(self.target)


REQUEST = PredictionRequest
