"""``accel-tui export``: a run in a form that other programs read."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TextIO, cast

import click

from accel_engine.errors import RunError, UsageError
from accel_engine.run import find
from accel_tui.cli.output import write

EPILOG = """\b
Forms:
  csv          a table, by default of every step: number, epoch, time, values
  json         one object with all there is: plan, events, steps, devices
  parquet      a table as in csv, with the plan in its metadata; takes PyArrow
  tensorboard  a directory of event files: train, validation, devices

\b
Examples:
  accel-tui export last --to csv              every step, in RUN.csv
  accel-tui export last --to csv --table validation -o -
                                              the validations, to read on
  accel-tui export k3fp --to tensorboard -o logs/k3fp
"""

TABLES = ("steps", "validation", "samples", "events")

STANDARD_OUTPUT = "-"


@click.command(epilog=EPILOG)
@click.argument("run")
@click.option("--to", "form", required=True, type=click.Choice(["csv", "json", "parquet", "tensorboard"]), help="Form.")
@click.option("-o", "--output", metavar="PATH", help="Where to; - for standard output (csv, json).  [default: RUN.csv]")
@click.option(
    "--table", type=click.Choice(TABLES), help="What a csv or parquet file has the rows of.  [default: steps]"
)
@click.option("--force", is_flag=True, help="Overwrite what is there.")
def export(run: str, form: str, output: str | None, table: str | None, force: bool) -> None:
    """Write RUN, live or ended, as a file that other programs read.

    Steps are counted from 0 and their values are exact. It takes little memory however long the run is. The name of
    what was written goes to standard output.
    """
    if table is not None and form not in ("csv", "parquet"):
        raise click.UsageError(f"--table is for csv and parquet; {form} holds all that it has a place for")
    table = table or "steps"
    directory = find(run)
    if output == STANDARD_OUTPUT:
        if form not in ("csv", "json"):
            raise click.UsageError(f"{form} does not go to standard output: name a PATH")
        _write(form, table, directory, cast(TextIO, _Shown()) if sys.stdout.isatty() else sys.stdout)
        return
    path = Path(output or _name(directory, form, table))
    _check(path, is_directory=form == "tensorboard", force=force)
    try:
        _write_to(path, form, table, directory)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    write(path)


class _Shown(io.TextIOBase):
    """A terminal in place of a file: the data is for programs, and is cleaned only where a person looks at it."""

    def write(self, text: str) -> int:
        write(text, end="")
        return len(text)


def _name(directory: Path, form: str, table: str) -> str:
    if form == "tensorboard":
        return f"{directory.name}-tensorboard"
    return f"{directory.name}{'' if table == 'steps' else f'-{table}'}.{form}"


def _check(path: Path, *, is_directory: bool, force: bool) -> None:
    """Refuse to overwrite what nobody said may be overwritten, or what is something else."""
    if path.is_dir() != is_directory and path.exists():
        raise UsageError(f"{path} is {'a file' if is_directory else 'a directory'}: name another with --output")
    if not force and path.exists() and (not is_directory or any(path.iterdir())):
        raise UsageError(f"{path} is there already: name another with --output, or overwrite it with --force")


def _write_to(path: Path, form: str, table: str, directory: Path) -> None:
    from accel_engine.run.bulk_reader import BulkReader  # imports NumPy, which --help does without

    if form == "tensorboard":
        from accel_engine.tensorboard.run_log import RunLog

        with closing(BulkReader(directory)) as source, closing(RunLog(source, path)) as log:
            log.extend()
        return
    with _replacing(path) as written:
        if form == "parquet":
            from accel_engine.export.writers import write_parquet

            with closing(BulkReader(directory)) as source:
                write_parquet(source, table, written)
            return
        with written.open("w", encoding="utf-8", newline="") as stream:
            _write(form, table, directory, stream)


def _write(form: str, table: str, directory: Path, stream: TextIO) -> None:
    from accel_engine.export.writers import write_csv, write_json
    from accel_engine.run.bulk_reader import BulkReader

    with closing(BulkReader(directory)) as source:
        write_json(source, stream) if form == "json" else write_csv(source, table, stream)
    stream.flush()


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file beside the one that is wanted, which takes its place once it is whole."""
    written = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield written
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)
