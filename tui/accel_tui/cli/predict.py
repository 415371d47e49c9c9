"""``accel-tui predict``: predicts examples with the model of a run, or lets it write text."""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import click

from accel_engine.errors import AccelError, UsageError, file_errors
from accel_engine.process.engine_call import ask
from accel_engine.requests.predict import ExamplePredictions, PredictionOptions, PredictionRequest
from accel_engine.requests.protocol.request import ComputeDevice
from accel_engine.requests.write_text import WritingOptions, WritingRequest, WrittenPart
from accel_engine.run import diagnostics
from accel_engine.run.diagnostics import DataFormat
from accel_engine.run_queue.request_device import placed
from accel_engine.trained.prediction_files import check_example_files
from accel_engine.user_paths import exists, is_directory
from accel_tui.cli.options import takes
from accel_tui.cli.output import print_to_stderr, table, write, write_json
from accel_tui.cli.trained_models import custom_objects_option, run_or_file
from accel_tui.predictions.files import SavingOptions, files_of, write_predictions
from accel_tui.predictions.objects import objects
from accel_tui.predictions.rows import prediction_tables

EPILOG = """\b
Examples:
  accel-tui predict last photo.jpg
  accel-tui predict k3fp photos/ --top 1 --json | jq -r '.top[0].label'
  accel-tui predict k3fp houses.csv --output prices.csv
  tail -n 5 log.csv | cat header.csv - | accel-tui predict k3fp -
  accel-tui predict k3fp --text "great film" --text "dull"
  accel-tui predict k3fp scenes/ --output masks
  accel-tui predict k3fp --prompt "Once upon" --tokens 500
"""

_STANDARD_INPUT = "-"
"""The name of standard input among files."""

_HEAD = 1 << 16
"""Number of bytes that identify the format of a table."""


@click.command(epilog=EPILOG)
@click.argument("run", metavar="RUN|MODEL")
@click.argument("inputs", metavar="[INPUT...]", nargs=-1, type=click.Path(path_type=Path))
@takes(PredictionOptions, "examples", only=("texts", "top"))
@takes(WritingOptions, "writing")
@custom_objects_option
@takes(SavingOptions, "saving")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per example.")
def predict(
    run: str,
    inputs: tuple[Path, ...],
    examples: PredictionOptions,
    writing: WritingOptions,
    custom_objects: str,
    saving: SavingOptions,
    as_json: bool,
) -> int:
    """Predict each INPUT with the model of RUN, or of a FILE.keras or FILE.h5.

    An INPUT is a file of the kind of the run's data, or - for standard input: images or folders of images;
    the rows of a table (.csv, .tsv, .parquet, .jsonl), of which only the columns that the model needs are
    used; arrays (.npz, .npy); a .txt file with a text in each line; sounds. Of a time series the rows after
    the last window are predicted. Examples are preprocessed as the training data was, which may be gone.

    The weights are from the last checkpoint, or from the best one if the run has restore_best.
    PNG, JPEG, GIF and BMP files are converted to the size, colours and scaling of the training data.
    Prediction does not slow down a run that trains on a GPU, unless --device names this GPU. The exit
    status is 1 if an example or the model cannot be read, 2 if a file does not exist.
    """
    target, _ = run_or_file(run)
    if writing.prompt:
        if inputs or examples.texts or saving.output:
            raise UsageError("--prompt takes no other input, and writes to the terminal: leave out files and --output")
        return _write_text(target, writing, as_json=as_json)
    if not inputs and not examples.texts:
        raise UsageError(
            "nothing to predict: give images or other files of the kind of the run's data, --text or --prompt"
        )
    if missing := [str(path) for path in inputs if str(path) != _STANDARD_INPUT and not exists(path)]:
        raise UsageError(f"no such file: {', '.join(missing)}")
    if saving.path and exists(saving.path) and not saving.force:
        raise UsageError(f"{saving.path} already exists: add --force to overwrite it")
    files = [file for path in inputs for file in ([path] if str(path) == _STANDARD_INPUT else files_of(path))]
    form = diagnostics.read(target).format if is_directory(target) else None
    chosen = replace(examples, checkpoint=writing.checkpoint, device=writing.device)
    return _predict(target, form, files, chosen, custom_objects, saving.path, as_json=as_json)


def _write_text(target: Path, options: WritingOptions, *, as_json: bool) -> int:
    """Let a model write: as it does on the screen, at once for JSON."""
    if not is_directory(target):
        raise UsageError(f"{target} has no vocabulary: give the run")
    shown: list[str] = []

    def show(part: WrittenPart) -> None:
        if not as_json:
            write(part.text if shown else f"{options.prompt}{part.text}", end="")
            sys.stdout.flush()
            shown.append(part.text)

    with placed(WritingRequest(target, options)) as request:
        written = ask(request, show)
    if as_json:
        values = {"run": written.name, "step": written.step, "prompt": options.prompt, "text": written.text}
        write_json({**values, "tokens": written.tokens, "device": written.device.id})
    else:
        write()
    _print_notes(written.device, written.notes)
    return 0


def _predict(
    target: Path,
    form: DataFormat | None,
    files: list[Path],
    options: PredictionOptions,
    custom_objects: str,
    output: Path | None,
    *,
    as_json: bool,
) -> int:
    if options.texts and form is not None and form.kind != "text":
        raise UsageError(f"run {target.name} does not take texts: its data is {form.kind}")
    with _read_files(files, form) as readable:
        if form is not None:
            check_example_files(target.name, form, readable)
        asked = PredictionRequest(
            target, tuple(readable), options.texts, options.checkpoint, custom_objects, options.device
        )
        with placed(asked) as request:
            found = ask(request)
    saved = {str(path) for path in readable} - {str(path) for path in files}
    found = replace(found, names=tuple(("" if path in saved else path, name) for path, name in found.names))
    lines = list(objects(found, options.top)) if as_json else []
    shown = {f"{values['image']}: {note}" for values in lines for note in values.get("notes", ())}
    _print_notes(found.device, (note for note in found.notes if note not in shown))
    if output is not None:
        write_predictions(output, found, options.top)
        if not as_json:
            write(output)
    if as_json:
        for values in lines:
            write_json({"run": found.name, "step": found.step, "device": found.device.id, **values})
    elif output is None and found.readable:
        write(_prediction_table(found, options.top))
    print_to_stderr(*found.problems.values())
    return int(bool(found.problems))


def _print_notes(device: ComputeDevice, notes: Iterable[str]) -> None:
    """Print notes, first of all the device; not on a machine without GPUs."""
    if device.is_notable:
        print_to_stderr(f"computed {device.text}")
    print_to_stderr(*notes)


@contextmanager
def _read_files(files: list[Path], form: DataFormat | None) -> Iterator[list[Path]]:
    """The files, with a temporary one for standard input."""
    if not any(str(file) == _STANDARD_INPUT for file in files):
        yield files
        return
    if sum(str(file) == _STANDARD_INPUT for file in files) > 1:
        raise UsageError("standard input can be read once")
    with _saved_input(form.kind if form else "table") as saved:
        yield [saved if str(file) == _STANDARD_INPUT else file for file in files]


def _prediction_table(found: ExamplePredictions, top: int) -> str:
    """A table for each output, with the examples that have a prediction.

    Args:
        found: The predictions.
        top: Number of the most probable classes.
    """
    pages = []
    for each in prediction_tables(found, top):
        page = table(each.header, each.rows)
        pages.append(f"{each.output}\n{page}" if each.output else page)
    return "\n\n".join(pages)


@contextmanager
def _saved_input(kind: str) -> Iterator[Path]:
    """Yield a temporary file with what standard input has.

    Args:
        kind: What an example of the run's data is: of a text, lines; otherwise a table, as CSV, TSV or JSON lines.

    Raises:
        UsageError: Standard input is closed, a terminal, or empty.
        RunError: Standard input cannot be read, or the temporary file cannot be written.
    """
    if sys.stdin is None:
        raise UsageError("standard input is closed: pipe the examples into the command")
    if sys.stdin.isatty():
        raise UsageError("standard input is a terminal: pipe the examples into the command")
    with tempfile.TemporaryDirectory(prefix="accel-tui-") as folder:
        with file_errors("cannot save standard input in a temporary file"):
            path = _save(sys.stdin.buffer, Path(folder), kind)
        try:
            yield path
        except AccelError as error:
            error.args = (str(error).replace(f"{folder}/", ""),)
            raise


def _save(stream: BinaryIO, folder: Path, kind: str) -> Path:
    """Copy a stream into a file.

    Raises:
        UsageError: The stream is empty.
        OSError: The stream cannot be read, or the file cannot be written.
    """
    head = stream.read(_HEAD)
    if not head.strip():
        raise UsageError("standard input is empty")
    path = folder / f"standard input{'.txt' if kind == 'text' else _table_suffix(head)}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(stream, file)
    return path


def _table_suffix(head: bytes) -> str:
    """The suffix of a table, by its first line."""
    line = head.strip().partition(b"\n")[0]
    if head.startswith(b"PAR1"):
        return ".parquet"
    if line.startswith(b"{"):
        return ".jsonl"
    return ".tsv" if b"\t" in line and b"," not in line and b";" not in line else ".csv"
