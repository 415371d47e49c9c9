"""``accel-tui rename``, ``note`` and ``tag``: edit the name, note and tags of a run."""

from pathlib import Path

import click

from accel_engine.run import find_run
from accel_engine.run.store.annotations import rename_run, set_note, set_tags
from accel_tui.cli.output import write


@click.command(epilog="\b\nExample:\n  accel-tui rename k3fp 'best so far'")
@click.argument("run")
@click.argument("name")
def rename(run: str, name: str) -> None:
    """Rename RUN to NAME; its id stays. An empty NAME restores the name in its plan."""
    directory = find_run(run)
    new = rename_run(directory, name).name
    write(f"{directory.name}: name {new!r}" if new else f"{directory.name}: name reset")


@click.command(epilog="\b\nExample:\n  accel-tui note last with the cleaned labels")
@click.argument("run")
@click.argument("text", nargs=-1, required=True)
def note(run: str, text: tuple[str, ...]) -> None:
    """Set the note of RUN to TEXT. An empty TEXT removes the note."""
    directory = find_run(run)
    new = set_note(directory, " ".join(text)).note
    write(f"{directory.name}: note {new!r}" if new else f"{directory.name}: note removed")


# Otherwise click would parse -TAG as an option.
@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="\b\nExamples:\n  accel-tui tag last +paper -draft\n  accel-tui runs --filter tag:paper",
)
@click.argument("run")
@click.argument("changes", nargs=-1, required=True, metavar="+TAG|-TAG...", type=click.UNPROCESSED)
def tag(run: str, changes: tuple[str, ...]) -> None:
    """Edit the tags of RUN: +TAG adds a tag, -TAG removes one."""
    directory: Path = find_run(run)
    tags = set_tags(directory, changes).tags
    write(f"{directory.name}: {'tags ' + ' '.join(tags) if tags else 'no tags'}")
