"""``accel-tui export``: exports a run's tables to CSV, JSON, Parquet or TensorBoard, or its trained model."""

import io
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TextIO, cast

import click

from accel_engine.errors import RunError, UsageError
from accel_engine.files import replacing
from accel_engine.formats import all_formats
from accel_engine.model_export.export_targets import ExportOptions
from accel_engine.models.model_files import is_model_file
from accel_engine.run import RunReader, find
from accel_engine.user_paths import exists, is_directory
from accel_tui.cli.export_model import MODEL_FORMATS, export_trained_model
from accel_tui.cli.options import takes
from accel_tui.cli.output import print_to_stderr, write
from accel_tui.cli.trained_models import find_model
from accel_tui.formatting.runs import left_out

_ABOUT_FORMATS = "\n".join(f"  {each.name:<12} {each.about}" for each in all_formats())

PRECISIONS = tuple(dict.fromkeys(each.name for kind in all_formats() for each in kind.precisions))

EPILOG = f"""\b
Formats:
  csv          one table, by default the steps: number, epoch, time, values;
               of a script under accel-tui run also the part, counted from 1
  json         one object with the plan, events, steps and device metrics
  parquet      one table as in csv, with the plan as metadata; needs PyArrow
  tensorboard  a directory of event files: train, validation, devices

\b
Formats of the trained model:
{_ABOUT_FORMATS}
  all          all of these, in a directory, and the fastest marked

\b
Examples:
  accel-tui export last --to csv              every step, to RUN.csv
  accel-tui export last --to csv --table validation -o -
                                              validations, to standard output
  accel-tui export k3fp --to tensorboard -o logs/k3fp
  accel-tui export k3fp --to savedmodel -o serving/digits
  accel-tui export k3fp --to tflite --quantize int8
  accel-tui export model.keras --data photos/ --to onnx
"""

FORMATS = ("csv", "json", "parquet", "tensorboard")

TABLES = ("steps", "validation", "samples", "events")

STANDARD_OUTPUT = "-"


def _only_one(context: click.Context, option: click.Parameter, formats: tuple[str, ...]) -> str:
    """The format, of which the last would be written, and the others not, if there were several."""
    if len(formats) > 1:
        raise click.BadParameter("takes one format: export to each, or to all", context, option)
    return formats[0]


@click.command(epilog=EPILOG)
@click.argument("run", metavar="RUN|MODEL")
@click.option(
    "--to",
    "file_format",
    required=True,
    multiple=True,
    callback=_only_one,
    type=click.Choice((*FORMATS, *MODEL_FORMATS)),
    help="Output format.",
)
@click.option(
    "-o", "--output", metavar="PATH", help="Output path; - for standard output (csv, json).  [default: RUN.csv]"
)
@click.option("--data", default="", metavar="DATA", help="The data of a MODEL (a FILE.keras or FILE.h5), as in train.")
@click.option("--table", type=click.Choice(TABLES), help="Table to write to a csv or parquet file.  [default: steps]")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--quantize", type=click.Choice(PRECISIONS), help="Precision, such as int8 of tflite.  [default: none]")
@takes(ExportOptions, "chosen", only=("checkpoint", "tolerance", "target_latency"), if_given=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per model.")
def export(
    run: str,
    file_format: str,
    output: str | None,
    data: str,
    table: str | None,
    force: bool,
    quantize: str | None,
    chosen: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Export RUN, live or ended, to a file: its tables, or its trained model; or a MODEL, with --data.

    Steps are numbered from 0; values are exact. Memory use does not grow with the length of the run. The path of the
    file is printed.

    A model takes raw examples and gives named outputs. Each file is loaded by its own runtime and run on the test or
    validation examples. It is written only if its outputs are those of the trained model within the tolerance.
    """
    given = {
        "--quantize": quantize,
        **{f"--{name.replace('_', '-')}": value for name, value in chosen.items()},
        "--json": as_json or None,
    }
    _check_options(file_format, output, table, given)
    if file_format in MODEL_FORMATS:
        model = find_model(run, data)
        if isinstance(model, Path) and data:
            raise click.UsageError("--data is for the file of a model; a run is verified on its own data")
        if not isinstance(model, Path) and "checkpoint" in chosen:
            raise click.UsageError("--checkpoint is for runs; a file has its weights")
        export_trained_model(
            model,
            file_format,
            output,
            quantize=quantize or "none",
            force=force,
            as_json=as_json,
            **{"checkpoint": "auto", "tolerance": None, **chosen},
        )
        return
    if data or is_model_file(run):
        raise click.UsageError(f"{file_format} contains the tables of a run: leave out --data, and name a run")
    table = table or "steps"
    directory = find(run)
    if output == STANDARD_OUTPUT:
        if file_format not in ("csv", "json"):
            raise click.UsageError(f"{file_format} cannot be written to standard output: give a PATH")
        _write(file_format, table, directory, cast(TextIO, _Terminal()) if sys.stdout.isatty() else sys.stdout)
        return
    path = Path(output or _default_path(directory, file_format, table))
    _check(path, to_directory=file_format == "tensorboard", force=force)
    try:
        _write_to(path, file_format, table, directory)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    write(path)


def _check_options(
    file_format: str,
    output: str | None,
    table: str | None,
    of_models: Mapping[str, object],
) -> None:
    """Raise an error for an option that the format does not take; ``of_models`` are those of models."""
    if file_format in MODEL_FORMATS:
        if table is not None:
            raise click.UsageError(f"--table is for csv and parquet; {file_format} is a format of models")
        if output == STANDARD_OUTPUT:
            raise click.UsageError("a model cannot be written to standard output: give a PATH")
        quantize = of_models["--quantize"] or "none"
        able = [each.name for each in all_formats() if quantize in [precision.name for precision in each.precisions]]
        if quantize != "none" and file_format not in able:
            more = "; all has each" if file_format == "all" else ""
            raise click.UsageError(f"--quantize is for {', '.join(able)}{more}")
        served = [each.name for each in all_formats() if each.is_served]
        if "--target-latency" in of_models and file_format not in (*served, "all"):
            raise click.UsageError(f"--target-latency is for {', '.join(served)}, whose requests are batched")
        return
    if table is not None and file_format not in ("csv", "parquet"):
        raise click.UsageError(f"--table is for csv and parquet; {file_format} contains all tables")
    for name, value in of_models.items():
        if value is not None:
            raise click.UsageError(f"{name} is for formats of models; {file_format} contains tables")


class _Terminal(io.TextIOBase):
    """Writes to the terminal with control characters escaped; files get the exact data."""

    def write(self, text: str) -> int:
        write(text, end="")
        return len(text)


def _default_path(directory: Path, file_format: str, table: str) -> str:
    if file_format == "tensorboard":
        return f"{directory.name}-tensorboard"
    return f"{directory.name}{'' if table == 'steps' else f'-{table}'}.{file_format}"


def _check(path: Path, *, to_directory: bool, force: bool) -> None:
    """Raise an error if the path exists without --force, or is not of the right kind."""
    if is_directory(path) != to_directory and exists(path):
        raise UsageError(f"{path} is {'a file' if to_directory else 'a directory'}: choose another path with --output")
    if not force and exists(path) and (not to_directory or any(path.iterdir())):
        raise UsageError(f"{path} already exists: choose another path with --output, or overwrite it with --force")


def _write_to(path: Path, file_format: str, table: str, directory: Path) -> None:
    if file_format == "tensorboard":
        from accel_engine.tensorboard.run_log import RunLog

        with closing(RunReader(directory)) as source, closing(RunLog(source, path)) as log:
            log.extend()
            _tell_damaged(source)
        return
    with replacing(path) as temporary:
        if file_format == "parquet":
            from accel_engine.export.writers import write_parquet

            with closing(RunReader(directory)) as source:
                write_parquet(source, table, temporary)
                _tell_damaged(source)
            return
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            _write(file_format, table, directory, stream)


def _write(file_format: str, table: str, directory: Path, stream: TextIO) -> None:
    from accel_engine.export.writers import write_csv, write_run_json  # imports NumPy, which --help does not need

    with closing(RunReader(directory)) as source:
        write_run_json(source, stream) if file_format == "json" else write_csv(source, table, stream)
        stream.flush()
        _tell_damaged(source)


def _tell_damaged(source: RunReader) -> None:
    """Say on standard error how many records are missing in the output."""
    if damaged := source.find_damaged():
        print_to_stderr(left_out(damaged, source.directory))
