"""Where the formats of an exported model are written, and whether they can be."""

import os
from collections.abc import Sequence
from pathlib import Path

from accel_engine.errors import UsageError
from accel_engine.requests.export_model import BATCHING_FILE, QUANTIZATIONS, TOLERANCES, ExportTarget, target_name
from accel_engine.user_paths import exists, is_directory

FORMATS = (
    ("keras", "none"),
    ("savedmodel", "none"),
    ("onnx", "none"),
    *(("tflite", quantize) for quantize in QUANTIZATIONS),
)
"""All formats of models, each with its quantization."""

_SUFFIXES = {"keras": ".keras", "tflite": ".tflite", "onnx": ".onnx"}


def all_targets(
    run: str, folder: Path, tolerance: float | None = None, formats: Sequence[tuple[str, str]] = FORMATS
) -> list[ExportTarget]:
    """A target in a folder for each format.

    Args:
        run: The run's id, which files are named after.
        folder: The folder; it may not exist yet.
        tolerance: Instead of the tolerances of :data:`accel_engine.requests.export_model.TOLERANCES`.
        formats: Of :data:`FORMATS`.

    Raises:
        UsageError: The directory of a SavedModel cannot be read.
    """
    return [target_at(folder / default_name(run, *each), *each, tolerance) for each in formats]


def target_at(path: Path, file_format: str, quantize: str, tolerance: float | None = None) -> ExportTarget:
    """A target at a path; of a SavedModel, its next version there.

    Raises:
        UsageError: The directory of a SavedModel cannot be read.
    """
    name = target_name(file_format, quantize)
    if file_format == "savedmodel":
        path /= str(_next_version(path))
    return ExportTarget(
        name, file_format, quantize, str(path.absolute()), TOLERANCES[name] if tolerance is None else tolerance
    )


def default_folder(run: str) -> str:
    """The name of the folder for several formats."""
    return f"{run}-models"


def default_name(run: str, file_format: str, quantize: str) -> str:
    """The name of the file, or of the directory of a SavedModel's versions."""
    if file_format == "savedmodel":
        return f"{run}-savedmodel"
    return f"{run}{'' if quantize == 'none' else f'-{quantize}'}{_SUFFIXES[file_format]}"


def check_target(target: ExportTarget) -> None:
    """Raise an error if a model cannot be written to its path, not even over what is there.

    Raises:
        UsageError: The path is of the wrong kind, or it has the suffix of another format.
    """
    path = Path(target.path)
    if target.format == "savedmodel":
        above = path.parent
        if exists(above) and not is_directory(above):
            raise UsageError(f"{above} is a file: choose another path")
        if path.name == "1" and set(_names(above)) - {BATCHING_FILE}:
            raise UsageError(f"{above} has other files than versions of a model: choose another path")
        return
    if path.suffix != _SUFFIXES[target.format]:
        raise UsageError(f"{path.name}: the name of a model in this format ends with {_SUFFIXES[target.format]}")
    for each in target.files:
        if is_directory(each):
            raise UsageError(f"{each} is a directory: choose another path")


def overwritten(target: ExportTarget) -> list[Path]:
    """The files that are there already; none for a SavedModel, which gets a new version."""
    return [] if target.format == "savedmodel" else [path for path in target.files if exists(path)]


def existing_folder(path: Path) -> Path:
    """The path, or the directory above it that is there.

    Raises:
        UsageError: It is a file.
    """
    while not exists(path) and path != path.parent:
        path = path.parent
    if not is_directory(path):
        raise UsageError(f"{path} is a file: choose another path")
    return path


def _next_version(path: Path) -> int:
    """The version that TensorFlow Serving takes for the newest."""
    return max((int(name) for name in _names(path) if name.isdecimal()), default=0) + 1


def _names(directory: Path) -> list[str]:
    """The names in a directory; none if it is not there.

    Raises:
        UsageError: It cannot be read.
    """
    if not is_directory(directory):
        return []
    try:
        return os.listdir(directory)
    except OSError as error:
        raise UsageError(f"cannot read {directory}: {error.strerror}") from error
