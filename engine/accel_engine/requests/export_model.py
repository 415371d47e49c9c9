"""Asks for exports of the trained model of a run."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from accel_engine.errors import ModelError
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import ComputeDevice, DeviceRequest, ExamplesDone, FolderRequest


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """A file to write."""

    name: str
    """The name of its format and precision."""
    format: str
    """The name of one of :func:`accel_engine.formats.all_formats`."""
    quantize: str
    """The name of one of its precisions."""
    path: str
    """The file, or the directory of a SavedModel's version."""
    tolerance: float
    """As in :class:`accel_engine.formats.Precision`."""


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """The measurements of an exported model."""

    name: str
    """The name of its target."""
    metrics: Mapping[str, float | None]
    """The loss and the metrics on the examples, ``None`` for what is not a finite number."""
    largest: float | None
    """The largest difference of a value of an output from the trained model's, in parts of its scale; ``None`` if
    it is not finite."""
    mean: float | None
    """The largest of the mean differences of the values, over the examples."""
    size: int
    """Bytes of its files; of the trained model, of its weights."""
    latency: float | None
    """The median time of a request with one example, in seconds."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """A line about each input, such as ``uint8 28x28x1``."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """The same for each output."""
    path: str = ""
    """Where it was written; empty for the trained model."""
    problem: str = ""
    """Why it was not written; empty if it was."""
    batching: str = ""
    """Where the batching configuration of TensorFlow Serving was written; empty if it was not."""


@dataclass(frozen=True, slots=True)
class Export:
    """The exports of a run's trained model."""

    name: str
    """The run's id, or the file's name."""
    step: int
    """Steps that the model was trained for."""
    split: str
    """The examples on which it was verified: ``test`` or ``validation``."""
    examples: int
    """Their number; 0 if unknown."""
    notes: tuple[str, ...]
    """Warnings for the user."""
    original: MeasuredModel
    """The trained model."""
    exported: tuple[MeasuredModel, ...]
    """The exported ones."""
    device: ComputeDevice = field(default_factory=ComputeDevice)
    """The device that computed the outputs of the trained model and of SavedModels; the other formats run on the
    CPU."""

    @property
    def written(self) -> tuple[MeasuredModel, ...]:
        """The models within the tolerance, which were written."""
        return tuple(each for each in self.exported if not each.problem)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that were written, each SavedModel with its batching configuration if it has one."""
        return tuple(path for each in self.written for path in (each.path, each.batching) if path)

    @property
    def fastest(self) -> MeasuredModel | None:
        """The model of the shortest latency that was written; ``None`` if none was measured."""
        timed = [(each.latency, place) for place, each in enumerate(self.written) if each.latency is not None]
        return self.written[min(timed)[1]] if timed else None


def _umask() -> int:
    """The permissions that files of the user do not get; the engine's own files are its owner's alone."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@dataclass(frozen=True, slots=True)
class WritingFormat:
    """A format begins to be written."""

    name: str
    """The name of its target."""


@dataclass(frozen=True, slots=True)
class ExportRequest(DeviceRequest, FolderRequest[Export]):
    """A request to export a trained model.

    The parts are examples done, the formats that begin, and the trained model and each exported one once compared.
    """

    function: ClassVar = "accel_engine.model_export.export:export"
    result: ClassVar = Export
    parts: ClassVar = (ExamplesDone, WritingFormat, MeasuredModel)
    is_batch: ClassVar = False

    model: ModelReference
    targets: tuple[ExportTarget, ...]
    """The formats and paths to write."""
    folder: Path = field(kw_only=True)
    """Where files are written before they are kept; on the file system of the targets."""
    checkpoint: str
    """``auto``, ``best``, ``last`` or a step."""
    target_latency: float | None = None
    """Seconds that a request to TensorFlow Serving may take; ``None`` for any."""
    split: str = "auto"
    """The split on which it is verified, as in an evaluation."""
    umask: int = field(default_factory=_umask)
    """Permissions that what is kept does not get; the engine's own files are its owner's alone."""
    wanted_device: str = "cpu"
    """``auto``, ``cpu`` or a GPU such as ``gpu:0``."""
    device: ComputeDevice = field(default_factory=ComputeDevice, kw_only=True)
    """See :class:`DeviceRequest`."""

    @property
    def model_paths(self) -> tuple[Path, ...]:
        """See :attr:`DeviceRequest.model_paths`."""
        return (self.model.path,)

    def check(self) -> None:
        """See :meth:`FolderRequest.check`.

        Raises:
            ModelError: Libraries of all formats are missing.
            RunError: The run has no checkpoint.
        """
        self.model.check()
        from accel_engine import formats  # which imports NumPy

        missing = [formats.format_named(each.format).precision(each.quantize).missing for each in self.targets]
        if all(missing):
            raise ModelError(missing[0])


REQUEST = ExportRequest
