"""``accel-tui export``: exports a run's tables to CSV, JSON, Parquet or TensorBoard, or its trained model."""

import io
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TextIO, cast

import click

from accel_engine.errors import ModelError, UsageError, file_errors
from accel_engine.files import replacing
from accel_engine.formats import all_formats
from accel_engine.model_export import export_options
from accel_engine.models.model_files import is_model_file
from accel_engine.plan import Plan
from accel_engine.process.engine_call import ask
from accel_engine.requests.export_model import Export, ExportRequest, MeasuredModel
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.run import RunReader, find_run
from accel_engine.run_queue.request_device import placed
from accel_engine.user_paths import exists, is_directory
from accel_tui.cli.options import takes
from accel_tui.cli.output import print_to_stderr, table, write, write_json
from accel_tui.cli.trained_models import find_model
from accel_tui.formatting import model_export
from accel_tui.formatting.runs import device_warnings

_ABOUT_FORMATS = "\n".join(f"  {each.name:<12} {each.about}" for each in all_formats())

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


@click.command(epilog=EPILOG)
@click.argument("run", metavar="RUN|MODEL")
@takes(export_options.ExportOptions, "options")
@click.option("--data", default="", metavar="DATA", help="The data of a MODEL (a FILE.keras or FILE.h5), as in train.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per model.")
def export(run: str, options: export_options.ExportOptions, data: str, as_json: bool) -> None:
    """Export RUN, live or ended, to a file: its tables, or its trained model; or a MODEL, with --data.

    Steps are numbered from 0; values are exact. Memory use does not grow with the length of the run. The path of the
    file is printed.

    A model takes raw examples and gives named outputs. Each file is loaded by its own runtime and run on the test or
    validation examples. It is written only if its outputs equal the trained model's within the tolerance.
    """
    if len(options.formats) > 1:  # the last would be written, and the others not
        raise click.BadParameter("takes one format: export to each, or to all", param_hint="'--to'")
    if options.is_of_model:
        _export_model(_model(run, data, options.checkpoint), options, as_json=as_json)
        return
    (file_format,), table = options.formats, options.table or "steps"
    if as_json:
        raise export_options.refused_for_tables("--json", file_format)
    if data or is_model_file(run):
        raise click.UsageError(f"{file_format} contains the tables of a run: leave out --data, and name a run")
    _export_tables(find_run(run), file_format, table, options)


def _model(run: str, data: str, checkpoint: str) -> Path | Plan:
    """The directory of a run, or the plan of a model's file.

    Raises:
        UsageError: There is no such run or file, or an option is not for it.
    """
    model = find_model(run, data)
    if isinstance(model, Path) and data:
        raise click.UsageError("--data is for the file of a model; a run is verified on its own data")
    if not isinstance(model, Path) and checkpoint != "auto":
        raise click.UsageError("--checkpoint is for runs; a file has its weights")
    return model


def _export_model(model: Path | Plan, options: export_options.ExportOptions, *, as_json: bool) -> None:
    """Export a trained model, and print what was measured.

    Args:
        model: The directory of its run, or a plan with its file and its data.
        options: The options, with one format of models.
        as_json: Whether to print a JSON object for each format instead of a table.

    Raises:
        ModelError: Nothing was written; the message says why.
        UsageError: The output cannot be written there.
    """
    targets = export_options.chosen_targets(Path(model.model).stem if isinstance(model, Plan) else model.name, options)
    for target in targets:
        export_options.check_target(target)
        if isinstance(model, Plan) and Path(target.path).resolve() == Path(model.model).resolve():
            raise UsageError(f"{target.path} is the model that is exported: choose another path with --output")
        if not options.force and (there := export_options.overwritten(target)):
            raise UsageError(
                f"{there[0]} already exists: choose another path with --output, or overwrite it with --force"
            )
    folder = export_options.existing_folder(Path(targets[0].path).parent)
    print_to_stderr(*device_warnings(("cpu",), can_choose=False))
    reference = ModelReference.of(model)
    asked = ExportRequest(
        reference,
        tuple(targets),
        options.checkpoint,
        options.target_latency,
        wanted_device=options.device,
        folder=folder,
    )
    with placed(asked) as request:
        found = ask(request)
    print_to_stderr(*found.notes)
    if as_json:
        for each in (found.original, *found.exported):
            write_json(_model_values(found, each))
    elif found.written:
        write("\n\n".join(_export_page(found)))
    if not found.written:
        raise ModelError("nothing was written: " + "; ".join(model_export.problems(found)))


def _export_page(found: Export) -> Iterator[str]:
    yield model_export.export_headline(found)
    yield table(model_export.SIGNATURE, list(model_export.signature_rows(found.written[0])))
    metrics = list(found.original.metrics)
    yield table(model_export.model_header(metrics), model_export.model_rows(found, metrics))
    if reasons := list(model_export.problems(found)):
        yield "\n".join(("not written:", *(f"  {reason}" for reason in reasons)))
    yield "\n".join(found.paths)


def _model_values(found: Export, model: MeasuredModel) -> dict[str, object]:
    """The measurements of a model, as a JSON object."""
    return {
        "run": found.name,
        "step": found.step,
        "split": found.split,
        "examples": found.examples,
        "device": found.device.id,
        "model": model.name,
        "path": model.path if not model.problem else None,
        "batching": model.batching or None,
        "problem": model.problem or None,
        "fastest": model is found.fastest,
        "inputs": model.inputs,
        "outputs": model.outputs,
        "largest_difference": model.largest,
        "mean_difference": model.mean,
        "size": model.size,
        "latency": model.latency,
        "metrics": model.metrics,
    }


def _export_tables(directory: Path, file_format: str, table: str, options: export_options.ExportOptions) -> None:
    """Write the tables of a run, and the path."""
    if options.output == export_options.STANDARD_OUTPUT:
        stream = cast(TextIO, _Terminal()) if sys.stdout.isatty() else sys.stdout
        _write(file_format, table, directory, stream)
        return
    path = Path(options.output or _default_path(directory, file_format, table))
    _check(path, to_directory=file_format == "tensorboard", force=options.force)
    with file_errors(f"cannot write {path}"):
        _write_to(path, file_format, table, directory)
    write(path)


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
        return
    with replacing(path) as temporary:
        if file_format == "parquet":
            from accel_engine.export.table_writers import write_parquet

            with closing(RunReader(directory)) as source:
                write_parquet(source, table, temporary)
            return
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            _write(file_format, table, directory, stream)


def _write(file_format: str, table: str, directory: Path, stream: TextIO) -> None:
    from accel_engine.export.table_writers import write_csv, write_run_json  # imports NumPy, which --help does not need

    with closing(RunReader(directory)) as source:
        write_run_json(source, stream) if file_format == "json" else write_csv(source, table, stream)
        stream.flush()
