"""``accel-tui report``: the report on a run as an HTML file."""

from pathlib import Path

import click

from accel_engine.errors import UsageError
from accel_engine.run import find_run
from accel_engine.user_paths import exists, is_directory, user_path
from accel_tui.cli.output import write

EPILOG = """\b
Examples:
  accel-tui report last
  accel-tui report k3fp -o results/digits.html
"""


@click.command(epilog=EPILOG)
@click.argument("run", metavar="RUN")
@click.option("-o", "--output", metavar="FILE", help="The file.  [default: RUN.html]")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def report(run: str, output: str | None, force: bool) -> None:
    """Write a report on a RUN: one HTML file with curves, plan, result, diagnostics, advice and environment.

    The file needs no network and no other file, so that you can send it. RUN may be live, ended, recorded by a script
    or imported.
    """
    directory = find_run(run)
    path = _report_path(directory, output)
    if exists(path) and not force:
        raise UsageError(f"{path} already exists: choose another path with --output, or overwrite it with --force")
    from accel_tui.report.run_report import write_report  # its imports are slow

    write_report(directory, path)
    write(str(path))


def _report_path(directory: Path, output: str | None) -> Path:
    """Where the report on a run is written: a file in the working directory, if no other is named.

    Raises:
        UsageError: The path is a directory, or does not end with ``.html``.
    """
    path = user_path(output) if output else Path(f"{directory.name}.html")
    if is_directory(path):
        raise UsageError(f"{path} is a directory: name a file in it")
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{path.name} does not end with .html, in which format a report is")
    return path
