"""The options of an export: formats and paths, and whether they are possible."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accel_engine.errors import UsageError
from accel_engine.export import FORMATS as TABLE_FORMATS
from accel_engine.export import TABLES
from accel_engine.formats import all_formats, format_named, target_name
from accel_engine.plan.options import FORCE, OptionSpec, default_of, option, parse_latency
from accel_engine.requests.export_model import ExportTarget
from accel_engine.requests.protocol.model_reference import CHECKPOINT, DEVICE
from accel_engine.user_paths import exists, is_directory

FORMATS = tuple((each.name, precision.name) for each in all_formats() for precision in each.precisions)
"""All formats of models, each with its precision."""

_SERVED = tuple(target_name(*kind) for kind in FORMATS if format_named(kind[0]).is_served)
"""The names of those formats that TensorFlow Serving takes."""

_NAMES = (*(each.name for each in all_formats()), "all")
"""What ``--to`` takes besides the formats of tables."""

_OF_MODELS = ("checkpoint", "quantize", "tolerance", "target_latency", "device")
"""Options that exports of tables do not have."""

STANDARD_OUTPUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of an export of a run, or of the file of a model.

    Raises:
        UsageError: There is no format, or an option is not for it.
    """

    formats: tuple[str, ...] = option(
        (),
        OptionSpec(
            "Output format.", tuple, flags=("--to",), choices=(*TABLE_FORMATS, *_NAMES), repeats=True, is_required=True
        ),
    )
    output: str = option(
        "",
        OptionSpec(
            "Output path; - for standard output (csv, json); named after the run by default.",
            str,
            label="folder",
            flags=("-o", "--output"),
            metavar="PATH",
            suffixes=(),
            read=str,
        ),
    )
    table: str | None = option(
        None,
        OptionSpec("Table to write to a csv or parquet file; steps by default.", str, choices=TABLES, optional=True),
    )
    force: bool = option(default=False, spec=FORCE)
    checkpoint: str = option("auto", CHECKPOINT)
    quantize: str = option(
        "none",
        OptionSpec(
            "Precision, such as int8 of tflite.",
            str,
            choices=tuple(dict.fromkeys(precision for _, precision in FORMATS)),
        ),
    )
    tolerance: float | None = option(
        None, OptionSpec("Largest difference of a model's outputs.", float, minimum=0, optional=True, hint="by format")
    )
    """Instead of the formats' own tolerances; ``None`` for these."""
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
    device: str = option(
        "cpu", replace(DEVICE, doc="Where the trained model and a savedmodel compute; other formats use the CPU.")
    )
    """The CPU by default, where all formats run, so that their latencies can be compared."""

    def __post_init__(self) -> None:
        if not self.formats:
            raise UsageError("no format is chosen: choose one with space")
        if self.formats[0] in TABLE_FORMATS:
            self._check_table(self.formats[0])
        else:
            self._check_models(self.formats[0])

    @property
    def is_of_model(self) -> bool:
        """Whether a model is exported."""
        return self.formats[0] not in TABLE_FORMATS

    def _check_table(self, kind: str) -> None:
        """Raise for an option that the format does not take."""
        if self.table is not None and kind not in ("csv", "parquet"):
            raise UsageError(f"--table is for csv and parquet; {kind} contains all tables")
        if self.output == STANDARD_OUTPUT and kind not in ("csv", "json"):
            raise UsageError(f"{kind} cannot be written to standard output: give a PATH")
        for name in _OF_MODELS:
            if getattr(self, name) != default_of(ExportOptions, name):
                raise refused_for_tables(f"--{name.replace('_', '-')}", kind)

    def _check_models(self, kind: str) -> None:
        """Raise for an option that no format takes."""
        if self.table is not None:
            raise UsageError(f"--table is for csv and parquet; {kind} is a format of models")
        if self.output == STANDARD_OUTPUT:
            raise UsageError("a model cannot be written to standard output: give a PATH")
        able = [each for each, precision in FORMATS if precision == self.quantize]
        if self.quantize != "none" and kind not in able:
            more = "; all has each" if kind == "all" else ""
            raise UsageError(f"--quantize is for {', '.join(able)}{more}")
        if self.target_latency is not None and {"all", *_SERVED}.isdisjoint(self.formats):
            raise UsageError(f"--target-latency is for {', '.join(_SERVED)}, whose requests are batched")


def refused_for_tables(flag: str, kind: str) -> UsageError:
    """The error of an option that a format of tables does not take."""
    return UsageError(f"{flag} is for formats of models; {kind} contains tables")


def chosen_targets(run: str, options: ExportOptions) -> list[ExportTarget]:
    """The targets of a command's options: in a folder if all formats are chosen.

    Args:
        run: The run's id, which files are named after.
        options: They have one format of models.

    Raises:
        UsageError: The directory of a SavedModel cannot be read.
    """
    (kind,) = options.formats
    if kind == "all":
        return all_targets(run, Path(options.output or default_folder(run)), options.tolerance)
    path = Path(options.output or _default_export_name(run, kind, options.quantize))
    return [target_at(path, kind, options.quantize, options.tolerance)]


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
    return [target_at(folder / _default_export_name(run, *each), *each, tolerance) for each in formats]


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


def _default_export_name(run: str, file_format: str, quantize: str) -> str:
    """The name of the file, or of the directory of a SavedModel's versions."""
    return format_named(file_format).default_name(run, quantize)


def check_target(target: ExportTarget) -> None:
    """See :meth:`accel_engine.formats.ModelFormat.check_path`."""
    format_named(target.format).check_path(Path(target.path))


def overwritten(target: ExportTarget) -> list[Path]:
    """The files that are there already; none for a SavedModel, which gets a new version."""
    return format_named(target.format).overwritten(Path(target.path))


def existing_folder(path: Path) -> Path:
    """The path, or the nearest directory above it that exists.

    Raises:
        UsageError: The path, or one above it, is a file.
    """
    while not exists(path) and path != path.parent:
        path = path.parent
    if not is_directory(path):
        raise UsageError(f"{path} is a file: choose another path")
    return path
