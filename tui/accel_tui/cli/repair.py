"""``accel-tui repair``: saves what is whole of a damaged run to a new run."""

import click

from accel_engine.run import find_run
from accel_tui.cli.output import table, write

EPILOG = """\b
Examples:
  accel-tui repair k3fp
  accel-tui repair runs/k3fp-mnist

\b
Exit status:
  0    something was saved, or nothing is damaged
  1    nothing can be saved, the run is being trained, or it is on a host
  2    no such run
  130  interrupted by Ctrl-C; nothing is left
"""

_NAMES = {
    "meta": "properties",
    "event": "events",
    "chunk": "chunks of steps",
    "sample": "device samples",
    "command": "commands",
    "diagnostics": "diagnostics",
    "media": "images, texts, histograms",
}
"""The names of the tables' contents, for messages."""


@click.command(epilog=EPILOG)
@click.argument("run")
def repair(run: str) -> None:
    """Save what is whole of a damaged RUN to a new run, with its whole checkpoints and its trained model.

    The damaged run is not changed. Its records are read as far as possible, also around damaged parts of the file; how
    many are saved and lost is printed. TensorBoard's event files are not copied: continuing the run, or accel-tui
    export, writes them anew.
    """
    from accel_engine.run.damage.repair import repair_run  # imports NumPy, which --help does not need

    directory = find_run(run)
    done = repair_run(directory)
    if done is None:
        write(f"Run {directory.name} is whole: there is nothing to repair.")
        return
    rows = [(_NAMES[name], f"{each.saved:,}", f"{each.lost:,}") for name, each in done.rows.items()]
    rows.append(("checkpoints", f"{done.checkpoints.saved:,}", f"{done.checkpoints.lost:,}"))
    if done.workers.saved or done.workers.lost:
        rows.append(("runs of other workers", f"{done.workers.saved:,}", f"{done.workers.lost:,}"))
    if done.model is not None:
        rows.append(("trained model", str(int(done.model)), str(int(not done.model))))
    write(table(("", "SAVED", "LOST AT MOST"), rows))
    steps = f"with steps up to {done.steps:,}" if done.steps else "without steps"
    write(f"\nSaved as run {done.directory.name}, {steps}.")
    if done.has_checkpoint:
        write(f"Continue it: accel-tui continue {done.directory.name}")
