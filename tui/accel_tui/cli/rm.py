"""``accel-tui rm``: delete runs."""

import sys

import click

from accel_engine.errors import RunError, UsageError
from accel_engine.run import find
from accel_engine.run.removal import contents, remove
from accel_tui.cli.output import print_line, write
from accel_tui.formatting import units

EPILOG = """\b
Examples:
  accel-tui rm k3fp
  accel-tui rm $(accel-tui runs --filter status:failed --json | jq -r .run)
"""


@click.command(epilog=EPILOG)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm(runs: tuple[str, ...], yes: bool) -> int:
    """Delete each RUN with its checkpoints, its model and its log. A live run is never deleted.

    It says first what would go and how large it is, and asks. The status is 1 when a run could not be deleted.
    """
    directories = list(dict.fromkeys(find(run) for run in runs))
    found = [contents(directory) for directory in directories]
    for directory, each in zip(directories, found, strict=True):
        parts = [
            f"{number} {word}{'s' * (number != 1)}"
            for number, word in (
                (each.checkpoints, "checkpoint"),
                (int(each.model), "trained model"),
                (each.workers, "worker's part"),
            )
            if number
        ]
        write(f"{directory.name}  {units.size(each.size)}" + "".join(f", {part}" for part in parts))
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("there is nobody to ask: give --yes to delete them")
        size, count = units.size(sum(each.size for each in found)), len(directories)
        if not click.confirm(f"Delete {'this run' if count == 1 else f'these {count} runs'}, {size}?"):
            return 1
    status = 0
    for directory in directories:
        try:
            remove(directory)
        except RunError as error:
            print_line(str(error))
            status = 1
    return status
