"""Where the formats of an exported model are written, and whether they can be."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import PlanError, UsageError
from accel_engine.formats import all_formats, format_named, target_name
from accel_engine.plan.options import OptionSpec, option, parse_latency
from accel_engine.requests.export_model import ExportTarget
from accel_engine.requests.protocol.model_reference import CHECKPOINT
from accel_engine.user_paths import exists, is_directory

FORMATS = tuple((each.name, precision.name) for each in all_formats() for precision in each.precisions)
"""All formats of models, each with its precision."""

_SERVED = tuple(target_name(*kind) for kind in FORMATS if format_named(kind[0]).is_served)
"""Those that TensorFlow Serving takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What is exported of a trained model to a folder.

    Attributes:
        formats: Names of some of :data:`FORMATS`.
        checkpoint: ``auto``, ``best``, ``last`` or a step.
        folder: Where to.
        tolerance: Instead of the formats' own tolerances; ``None`` for these.
        target_latency: Seconds that a request to TensorFlow Serving may take; ``None`` for any.

    Raises:
        UsageError: There is no format or no folder.
    """

    formats: tuple[str, ...] = option(
        (), OptionSpec("What to write.", tuple, choices=tuple(target_name(*kind) for kind in FORMATS))
    )
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
            hint="of a request to TensorFlow Serving at most, such as 20ms",
            read=parse_latency,
            goes_with=("formats", _SERVED),
        ),
    )

    def __post_init__(self) -> None:
        if not self.formats:
            raise UsageError("no format is chosen: choose one with space")
        if not self.folder:
            raise PlanError("folder", "", "give a folder to write to")


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
    found = format_named(file_format)
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
    return format_named(file_format).default_name(run, quantize)


def check_target(target: ExportTarget) -> None:
    """See :meth:`accel_engine.formats.ModelFormat.check_path`."""
    format_named(target.format).check_path(Path(target.path))


def overwritten(target: ExportTarget) -> list[Path]:
    """The files that are there already; none for a SavedModel, which gets a new version."""
    return format_named(target.format).overwritten(Path(target.path))


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
