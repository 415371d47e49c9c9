"""The folder of a model that is served: its description, ``service.json``, and its held-out examples."""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import ColumnFormat
from accel_engine.data.structure import ArraySpec, decoded_texts
from accel_engine.errors import UsageError
from accel_engine.files import regular
from accel_engine.inference.output_differences import Differences, OutputScale
from accel_engine.json_values import JsonValueError, Number, Text, decode, to_plain

FORMAT_VERSION = 1
"""The version of the description."""

DESCRIPTION, EXAMPLES = "service.json", "examples.npz"
"""The files beside the model."""

INPUTS, OUTPUTS = "inputs/", "outputs/"
"""What the names of the arrays in :data:`EXAMPLES` begin with."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or an output."""

    name: Text
    shape: tuple[int | None, ...]
    """Without the batch; ``None`` for a dimension of any size."""
    dtype: Text
    """NumPy's name of the type; ``string`` for texts."""

    @property
    def spec(self) -> ArraySpec:
        """The same without the name."""
        return ArraySpec(self.shape, self.dtype)


@dataclass(frozen=True, slots=True)
class Scale:
    """See :class:`accel_engine.inference.output_differences.OutputScale`."""

    center: tuple[Number, ...] = ()
    spread: tuple[Number, ...] = ()
    by_value: bool = False


@dataclass(frozen=True, slots=True)
class ServedModelFile:
    """The file of the model."""

    format: Text
    """The name of a :class:`accel_engine.formats.ModelFormat`."""
    quantize: Text
    """The name of its precision."""
    path: Text
    """The file, or the directory of a SavedModel, in the folder."""
    tolerance: Number
    """How far its outputs may be from the trained model's; see :class:`accel_engine.formats.Precision`."""
    by_mean: bool = False
    """Whether the tolerance limits the mean over the examples, not the largest difference."""
    size: int = 0
    """Bytes."""


@dataclass(frozen=True, slots=True)
class UploadForm:
    """How ``POST /predict`` makes examples of a file."""

    kind: Text = "arrays"
    """``images``, ``table``, ``series``, ``text``, ``audio`` or ``language``; ``arrays`` if it takes none."""
    columns: tuple[ColumnFormat, ...] = ()
    """How the columns of a table are read."""
    categories: Mapping[str, tuple[Text, ...]] = field(default_factory=dict)
    """The categories of a table's columns that training has seen, by the key of the input."""
    features: tuple[Text, ...] = ()
    """The columns of a series, or the column of a text."""
    time: Text = ""
    """The column of the time of a series; empty for none."""
    group: Text = ""
    """The column that tells several series apart; empty for none."""
    window: int = 0
    """Rows of a window of a series; tokens of a language model; samples of a window of a sound, 0 if sounds are cut."""
    sample_rate: int = 0
    """Samples per second of a sound."""
    low: Number = 0.0
    """The value of a black pixel."""
    high: Number = 255.0
    """The value of a white one."""
    integers: bool = True
    """Whether values of pixels are whole numbers."""
    vocabulary: tuple[Text, ...] = ()
    """The text of each token of a language model."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of an output; see :class:`accel_engine.inference.output_prediction.OutputPrediction`."""

    output: Text
    """Its name in the model."""
    name: Text
    """Its name in answers; empty if it is the only one."""
    task: Text
    classes: tuple[Text, ...] = ()
    columns: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A model that is served."""

    name: Text
    """The name in URLs."""
    version: Text = "1"
    """A number."""
    run: Text = ""
    """The run that trained it."""
    step: int = 0
    """Steps that it was trained for."""
    task: Text = ""
    """The task that it was trained for."""
    kind: Text = ""
    """The kind of its examples."""
    data: Text = ""
    """The name of its data."""
    data_hash: Text = ""
    """A hash of its data; empty if it is not known."""
    made: Number = 0.0
    """When the folder was written, in seconds since 1970."""
    versions: Mapping[str, Text] = field(default_factory=dict)
    """The versions of the programs that wrote it."""
    model: ServedModelFile
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    scales: Mapping[str, Scale] = field(default_factory=dict)
    """The scale of each output that is compared."""
    batch_sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    """Sizes of batches, the last one the largest."""
    class_names: tuple[Text, ...] = ()
    metrics: Mapping[str, Number] = field(default_factory=dict)
    """The loss and the metrics of the exported model on ``split``."""
    split: Text = ""
    """The examples of :data:`EXAMPLES`, and of the metrics."""
    examples: int = 0
    """Number of examples in :data:`EXAMPLES`."""
    files: UploadForm = UploadForm()
    meanings: tuple[Meaning, ...] = ()
    format_version: int = FORMAT_VERSION

    @property
    def largest_batch(self) -> int:
        """Examples of a batch at most."""
        return self.batch_sizes[-1]

    @property
    def specs(self) -> dict[str, ArraySpec]:
        """The spec of each input, without the batch."""
        return {each.name: each.spec for each in self.inputs}

    @property
    def output_specs(self) -> dict[str, ArraySpec]:
        """The spec of each output, without the batch."""
        return {each.name: each.spec for each in self.outputs}


def read_service(folder: Path) -> Service:
    """Read the description of a folder.

    Raises:
        UsageError: The folder has no model, or no description that is readable, valid and not of a newer version.
    """
    path = folder / DESCRIPTION
    try:
        service = decode(regular(path).read_text("utf-8"), Service)
    except FileNotFoundError as error:
        raise UsageError(f"{folder} is not a folder of a model to serve: it has no {DESCRIPTION}") from error
    except (OSError, UnicodeDecodeError, JsonValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    if service.format_version > FORMAT_VERSION:
        raise UsageError(f"{path} is of a newer version of accel-tui: update this one")
    if problem := _problem_of(service):
        raise UsageError(f"{path}: {problem}")
    if not model_path(folder, service).exists():
        raise UsageError(f"{folder} has no {service.model.path}, the model")
    return service


def _problem_of(service: Service) -> str:
    sizes, path = service.batch_sizes, Path(service.model.path)
    if not sizes or sizes[0] < 1 or list(sizes) != sorted(set(sizes)):
        return "batch_sizes are numbers from 1, in order"
    if not service.name or any(char in service.name for char in "/:?#% \n"):
        return "name must be fit for a URL"
    if not (service.version.isascii() and service.version.isdecimal()):
        return "version must be a number"
    if path.is_absolute() or ".." in path.parts:
        return "the path of the model must be in the folder"
    return "" if service.inputs and service.outputs else "a model has inputs and outputs"


def write_service(folder: Path, service: Service) -> None:
    """Write the description of a folder.

    Raises:
        OSError: The file cannot be written.
    """
    text = json.dumps(to_plain(service), ensure_ascii=False, indent=1)
    (folder / DESCRIPTION).write_text(text + "\n", "utf-8")


def model_path(folder: Path, service: Service) -> Path:
    """The model's file, or directory."""
    return folder / service.model.path


def write_examples(
    folder: Path, inputs: Mapping[str, npt.NDArray[Any]], outputs: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Write held-out examples.

    Args:
        folder: The folder.
        inputs: Raw inputs, ``[examples, ...]``; texts as objects.
        outputs: The trained model's outputs for them.

    Raises:
        OSError: The file cannot be written.
    """
    arrays = {f"{INPUTS}{name}": _without_objects(array) for name, array in inputs.items()}
    arrays |= {f"{OUTPUTS}{name}": _without_objects(array) for name, array in outputs.items()}
    np.savez_compressed(folder / EXAMPLES, allow_pickle=False, **arrays)


def _without_objects(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Texts as an array without pickled objects."""
    if array.dtype != object:
        return array
    texts = decoded_texts(array)
    return np.array(texts, "U" if texts else "U1").reshape(array.shape)


def load_examples(folder: Path) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """Read held-out examples.

    Returns:
        Raw inputs and the trained model's outputs for them, ``[examples, ...]``; texts as objects.

    Raises:
        UsageError: The file cannot be read.
    """
    path = folder / EXAMPLES
    try:
        with np.load(regular(path), allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    texts = {name: array.astype(object) if array.dtype.kind == "U" else array for name, array in found.items()}
    parts = [
        {name.removeprefix(lead): array for name, array in texts.items() if name.startswith(lead)}
        for lead in (INPUTS, OUTPUTS)
    ]
    return parts[0], parts[1]


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """How far the outputs of a server are from the trained model's."""

    largest: float
    """The largest difference of a value, in parts of its scale."""
    mean: float
    """The largest of the mean differences of the values, over the examples."""
    output: str
    """The output with the difference that counts."""
    problem: str
    """Why they are not equal; empty if they are, within the tolerance."""


def compare_outputs(
    service: Service, expected: Mapping[str, npt.NDArray[Any]], found: Mapping[str, npt.NDArray[Any]]
) -> OutputComparison:
    """Compare a server's outputs with the trained model's, as the export did.

    Args:
        service: Has the scales and the tolerance.
        expected: The trained model's outputs, ``[examples, ...]``, as in :func:`load_examples`.
        found: The server's outputs for the same examples.
    """
    names = [name for name in service.scales if name in expected]
    if missing := [name for name in names if name not in found]:
        return OutputComparison(np.inf, np.inf, missing[0], f"the server gives no output {missing[0]}")
    differences = Differences([_scale(service.scales[name]) for name in names])
    try:
        differences.add([expected[name] for name in names], [np.asarray(found[name]) for name in names])
    except ValueError as error:
        return OutputComparison(np.inf, np.inf, "", str(error))
    (largest, at, _), (mean, at_mean, _) = (differences.worst(by_mean=by_mean) for by_mean in (False, True))
    value, place, word = (mean, at_mean, "mean") if service.model.by_mean else (largest, at, "largest")
    problem = ""
    if not value <= service.model.tolerance:
        problem = f"the {word} difference of {names[place]}, {value:.2g}, is beyond {service.model.tolerance:g}"
    return OutputComparison(largest, mean, names[place], problem)


def _scale(scale: Scale) -> OutputScale:
    return OutputScale(np.array(scale.center), np.array(scale.spread), scale.by_value)
