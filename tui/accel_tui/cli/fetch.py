"""``accel-tui fetch``: brings a run of a host here, with its model, checkpoints and reports."""

from pathlib import Path

import click

from accel_engine.errors import UsageError
from accel_engine.hosts.runs_there import fetch_files, fetch_run
from accel_engine.run import find_run
from accel_engine.run.directory.run_paths import host_of_run
from accel_engine.words import numbers
from accel_tui.cli.output import write

EPILOG = """\b
Examples:
  accel-tui fetch gpu1:last
  accel-tui fetch gpu1:k3fp --to models/
"""


@click.command(epilog=EPILOG)
@click.argument("run")
@click.option(
    "--to", "folder", metavar="FOLDER", type=click.Path(path_type=Path), help="Write only its files, into FOLDER."
)
def fetch(run: str, folder: Path | None) -> int:
    """Bring a RUN of a host here: it is then a run of this machine, too, with its model, checkpoints and reports.

    The run stays on its host. One that still trains can only be brought with --to, as far as it has come.
    """
    directory = find_run(run)
    if not host_of_run(directory):
        raise UsageError(f"run {directory.name} is on this machine")
    if folder is not None:
        files, size = fetch_files(directory, folder)
        write(f"{folder}: {numbers.counted(files, 'file')}, {numbers.size(size)}")
    else:
        write(str(fetch_run(directory)))
    return 0
