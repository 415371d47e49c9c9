"""``accel-tui import``: imports what other tools recorded as runs."""

from pathlib import Path

import click

from accel_engine.errors import AccelError, UsageError
from accel_engine.run.store.annotations import validate_name, validate_tags
from accel_engine.words import numbers
from accel_tui.cli.output import print_to_stderr, write

EPILOG = """\b
Sources:
  TensorBoard  an event file, or a directory of them with any number of runs
  W&B          an offline run, its .wandb file, or a directory of offline runs
  CSV          a .csv or .tsv file with a header, one row per step or epoch

\b
Examples:
  accel-tui import logs/
  accel-tui import wandb/ --tag paper
  accel-tui import results.csv --step iteration --name baseline
"""


@click.command(name="import", epilog=EPILOG)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--name", default="", help="Name of the run.  [default: the source's]")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the runs; may be repeated.")
@click.option("--step", default="", metavar="COLUMN", help="Column of a CSV with the step.  [default: by its name]")
@click.option("--epoch", default="", metavar="COLUMN", help="Column of a CSV with the epoch.  [default: by its name]")
@click.option("--again", is_flag=True, help="Import also what is imported already.")
def import_(paths: tuple[Path, ...], name: str, tags: tuple[str, ...], step: str, epoch: str, again: bool) -> int:
    """Import what other tools recorded as runs, to look at and to compare.

    Finds the runs in each PATH. The files stay as they are. The id of each run is printed.
    """
    from accel_engine.imported_runs import find, import_run, imported_before
    from accel_engine.imported_runs.csv_files import ColumnNames  # imports NumPy, which --help does not need

    tags, name = validate_tags(tags), validate_name(name)
    sources = [source for path in paths for source in find(path, ColumnNames(step, epoch))]
    if name and len(sources) > 1:
        raise UsageError(
            f"--name names one run, and there are {len(sources):,}; rename them later with accel-tui rename"
        )
    failed, before = 0, imported_before()
    for source in sources:
        try:
            run_id, run = import_run(source, name, tags, again=again, before=before)
        except AccelError as error:
            if len(sources) == 1:
                raise
            print_to_stderr(str(error))
            failed += 1
            continue
        for note in run.notes:
            print_to_stderr(f"{run_id}: {note}")
        write(run_id)
    if failed:
        print_to_stderr(f"{numbers.counted(failed, 'run')} of {len(sources):,} not imported")
    return int(failed > 0)
