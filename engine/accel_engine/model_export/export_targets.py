"""Where the formats of an exported model are written, and whether they can be."""

from collections.abc import Sequence
from pathlib import Path

from accel_engine.errors import UsageError
from accel_engine.formats import all_formats, named, target_name
from accel_engine.requests.export_model import ExportTarget
from accel_engine.user_paths import exists, is_directory

FORMATS = tuple((each.name, precision.name) for each in all_formats() for precision in each.precisions)
"""All formats of models, each with its precision."""


def all_targets(
    run: str, folder: Path, tolerance: float | None = None, formats: Sequence[tuple[str, str]] = FORMATS
) -> list[ExportTarget]:
    """A target in a folder for each format.

    Args:
        run: The run's id, which files are named after.
        folder: The folder; it may not exist yet.
        tolerance: Instead of the formats' own tolerances.
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
    found = named(file_format)
    return ExportTarget(
        target_name(file_format, quantize),
        file_format,
        quantize,
        str(found.path_to_write(path).absolute()),
        found.precision(quantize).tolerance if tolerance is None else tolerance,
    )


def default_folder(run: str) -> str:
    """The name of the folder for several formats."""
    return f"{run}-models"


def default_name(run: str, file_format: str, quantize: str) -> str:
    """The name of the file, or of the directory of a SavedModel's versions."""
    return named(file_format).default_name(run, quantize)


def check_target(target: ExportTarget) -> None:
    """See :meth:`accel_engine.formats.ModelFormat.check_path`."""
    named(target.format).check_path(Path(target.path))


def overwritten(target: ExportTarget) -> list[Path]:
    """The files that are there already; none for a SavedModel, which gets a new version."""
    return named(target.format).overwritten(Path(target.path))


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
