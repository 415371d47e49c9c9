"""Asks for exports of the trained model of a run."""

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from accel_engine.errors import ModelError, PlanError, UsageError
from accel_engine.plan.options import OptionSpec, latency, option
from accel_engine.requests.protocol.model_reference import CHECKPOINT, ModelReference
from accel_engine.requests.protocol.request import EngineRequest, ExamplesDone

QUANTIZATIONS = ("none", "float16", "dynamic", "int8-weights", "int8")
"""Precisions of a TFLite model: float32; float16 weights; int8 weights with activations quantized as they come; int8
weights with float32 activations; int8 weights and activations."""

TOLERANCES = {
    "keras": 1e-4,
    "savedmodel": 1e-4,
    "onnx": 1e-3,
    "tflite": 1e-3,
    "tflite-float16": 0.02,
    "tflite-dynamic": 0.05,
    "tflite-int8-weights": 0.05,
    "tflite-int8": 0.05,
}
"""How far outputs may be from those of the trained model: the largest difference, or, of int8 weights, the mean over
the examples; of probabilities as they are, of other values in parts of their own scale. How much worse the loss and the
metrics may be follows from it, too. See ``accel_engine.model_export.judgement``."""

BATCHING_FILE = "batching.config"
"""The batching configuration of TensorFlow Serving, beside the versions of a SavedModel."""

_LIBRARIES = {"tflite": ("ai_edge_litert",), "onnx": ("onnx", "tf2onnx", "onnxruntime")}
"""What a format needs besides TensorFlow; their extras have the names of the formats."""

_QUANTIZER = ("ai_edge_quantizer",)
"""What ``int8-weights`` needs; its extra is ``quantizer``, which has LiteRT, too."""


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """A file to write.

    Attributes:
        name: One of :data:`TOLERANCES`.
        format: One of :data:`accel_engine.inference.open_model.FORMATS`.
        quantize: One of :data:`QUANTIZATIONS`.
        path: The file, or the directory of a SavedModel's version.
        tolerance: See :data:`TOLERANCES`.
    """

    name: str
    format: str
    quantize: str
    path: str
    tolerance: float

    @property
    def files(self) -> tuple[Path, ...]:
        """What is written: the path, and the file beside it if the format has one."""
        from accel_engine.inference.encoded_runtime import sidecar_of  # which imports NumPy

        path = Path(self.path)
        return (path, sidecar_of(path)) if self.format in ("tflite", "onnx") else (path,)


def target_name(file_format: str, quantize: str) -> str:
    """The name of a target."""
    return file_format if quantize == "none" else f"{file_format}-{quantize}"


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """What was measured of a model.

    Attributes:
        name: Of its target.
        metrics: The loss and the metrics on the examples, ``None`` for what is not a finite number.
        largest: The largest difference of a value of an output from the trained model's, in parts of its scale;
            ``None`` if it is not finite.
        mean: The largest of the mean differences of the values, over the examples.
        size: Bytes of its files; of the trained model, of its weights.
        latency: The median time of a request with one example, in seconds.
        inputs: A line about each input, such as ``uint8 28x28x1``.
        outputs: The same of each output.
        path: Where it was written; empty for the trained model.
        problem: Why it was not written; empty if it was.
        batching: Where the batching configuration of TensorFlow Serving was written; empty if it was not.
    """

    name: str
    metrics: Mapping[str, float | None]
    largest: float | None
    mean: float | None
    size: int
    latency: float | None
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    problem: str = ""
    batching: str = ""


@dataclass(frozen=True, slots=True)
class Export:
    """The exports of a run's trained model.

    Attributes:
        name: The run's id, or the file's name.
        step: Steps that the model was trained for.
        split: The examples on which it was verified: ``test`` or ``validation``.
        examples: Their number; 0 if unknown.
        notes: Warnings for the user.
        original: The trained model.
        exported: The exported ones.
    """

    name: str
    step: int
    split: str
    examples: int
    notes: tuple[str, ...]
    original: MeasuredModel
    exported: tuple[MeasuredModel, ...]

    @property
    def written(self) -> tuple[MeasuredModel, ...]:
        """Those within the tolerance, which were written."""
        return tuple(each for each in self.exported if not each.problem)

    @property
    def paths(self) -> tuple[str, ...]:
        """What was written, each SavedModel with its batching configuration if it has one."""
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
    """A format begins to be written.

    Attributes:
        name: Of its target.
    """

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What is exported of a trained model to a folder.

    Attributes:
        formats: Some of :data:`TOLERANCES`.
        checkpoint: ``auto``, ``best``, ``last`` or a step.
        folder: Where to.
        tolerance: Instead of :data:`TOLERANCES`; ``None`` for these.
        target_latency: Seconds that a request to TensorFlow Serving may take; ``None`` for any.

    Raises:
        UsageError: There is no format or no folder.
    """

    formats: tuple[str, ...] = option((), OptionSpec("What to write.", tuple, choices=tuple(TOLERANCES)))
    checkpoint: str = option("auto", CHECKPOINT)
    folder: str = option("", OptionSpec("Where to.", str, suffixes=()))
    tolerance: float | None = option(
        None,
        OptionSpec("Largest difference of a model's outputs.", float, minimum=0, optional=True, hint="by format"),
    )
    target_latency: float | None = option(
        None,
        OptionSpec(
            "The most that a request to TensorFlow Serving may take, for the batching of a savedmodel.",
            str,
            label="latency",
            metavar="10ms",
            hint="of a request to TensorFlow Serving at most, such as 20ms; or empty",
            read=latency,
            goes_with=("formats", "savedmodel"),
        ),
    )

    def __post_init__(self) -> None:
        if not self.formats:
            raise UsageError("no format is chosen: choose one with space")
        if not self.folder:
            raise PlanError("folder", "", "give a folder to write to")


@dataclass(frozen=True, slots=True)
class ExportRequest(EngineRequest[Export]):
    """A request to export a trained model, on the CPU.

    The parts are examples done, the formats that begin, and the trained model and each exported one once compared.

    Attributes:
        model: The model.
        targets: What to write.
        folder: Where files are written before they are kept; on the file system of the targets.
        checkpoint: ``auto``, ``best``, ``last`` or a step.
        target_latency: Seconds that a request to TensorFlow Serving may take; ``None`` for any.
        split: The examples on which it is verified, as of an evaluation.
        umask: Permissions that what is kept does not get; the engine's own files are its owner's alone.
    """

    function: ClassVar = "accel_engine.model_export.export:export"
    result: ClassVar = Export
    parts: ClassVar = (ExamplesDone, WritingFormat, MeasuredModel)
    is_batch: ClassVar = False
    has_folder: ClassVar = True

    model: ModelReference
    targets: tuple[ExportTarget, ...]
    folder: Path
    checkpoint: str
    target_latency: float | None = None
    split: str = "auto"
    umask: int = field(default_factory=_umask)

    def check(self) -> None:
        """See :meth:`EngineRequest.check`.

        Raises:
            ModelError: Libraries of all formats are missing.
            RunError: The run has no checkpoint.
        """
        self.model.check()
        if all(missing(target.format, target.quantize) for target in self.targets):
            raise ModelError(missing(self.targets[0].format, self.targets[0].quantize))


REQUEST = ExportRequest


def missing(file_format: str, quantize: str) -> str:
    """Which libraries of a format are missing, and how to install them; empty if none is."""
    needs_quantizer = quantize == "int8-weights"
    libraries = (*_LIBRARIES.get(file_format, ()), *(_QUANTIZER if needs_quantizer else ()))
    extra = "quantizer" if needs_quantizer else file_format
    absent = [name for name in libraries if importlib.util.find_spec(name) is None]
    return f"{', '.join(absent)} missing: pip install 'accel-tui[{extra}]'" if absent else ""
