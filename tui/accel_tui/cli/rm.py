"""``accel-tui rm``: deletes runs."""

import sys

import click

from accel_engine.errors import RunError, UsageError
from accel_engine.run import find_run
from accel_engine.run.runs.removal import count_contents, remove
from accel_engine.words import numbers
from accel_tui.cli.output import print_to_stderr, write

EPILOG = """\b
Examples:
  accel-tui rm k3fp
  accel-tui rm $(accel-tui runs --filter status:failed --json | jq -r .run)
"""


@click.command(epilog=EPILOG)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--yes", is_flag=True, help="Delete without confirmation.")
def rm(runs: tuple[str, ...], yes: bool) -> int:
    """Delete each RUN with its checkpoints, trained model and log. A live run is not deleted.

    The sizes are shown before you confirm. The exit status is 1 if a run could not be deleted.
    """
    directories = list(dict.fromkeys(find_run(run) for run in runs))
    found = [count_contents(directory) for directory in directories]
    for directory, each in zip(directories, found, strict=True):
        parts = [
            numbers.counted(number, noun)
            for number, noun in (
                (each.checkpoints, "checkpoint"),
                (int(each.model), "trained model"),
                (each.workers, "worker run"),
            )
            if number
        ]
        write(f"{directory.name}  {numbers.size(each.size)}" + "".join(f", {part}" for part in parts))
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("no terminal for the confirmation: delete with --yes")
        size, count = numbers.size(sum(each.size for each in found)), len(directories)
        if not click.confirm(f"Delete {'this run' if count == 1 else f'these {count} runs'}, {size}?"):
            return 1
    status = 0
    for directory in directories:
        try:
            remove(directory)
        except RunError as error:
            print_to_stderr(str(error))
            status = 1
    return status
