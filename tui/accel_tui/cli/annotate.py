"""``accel-tui rename``, ``note`` and ``tag``: what people say of runs, live ones too."""

from pathlib import Path

import click

from accel_engine.run import find
from accel_engine.run.annotations import rename as give_name
from accel_engine.run.annotations import set_note, set_tags
from accel_tui.cli.output import write


@click.command(epilog="\b\nExample:\n  accel-tui rename k3fp 'best so far'")
@click.argument("run")
@click.argument("name")
def rename(run: str, name: str) -> None:
    """Call RUN by another NAME; its id stays. An empty NAME gives it its plan's again."""
    directory = find(run)
    now = give_name(directory, name).name
    write(f"{directory.name} is called {now!r}" if now else f"{directory.name} is called what its plan calls it")


@click.command(epilog="\b\nExample:\n  accel-tui note last with the cleaned labels")
@click.argument("run")
@click.argument("text", nargs=-1, required=True)
def note(run: str, text: tuple[str, ...]) -> None:
    """Note TEXT of RUN, in place of what was noted before. An empty TEXT takes the note away."""
    directory = find(run)
    now = set_note(directory, " ".join(text)).note
    write(f"noted of {directory.name}: {now}" if now else f"nothing is noted of {directory.name} any more")


# Else click would take -b for an option.
@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="\b\nExamples:\n  accel-tui tag last +paper -draft\n  accel-tui runs --filter tag:paper",
)
@click.argument("run")
@click.argument("changes", nargs=-1, required=True, metavar="+TAG|-TAG...", type=click.UNPROCESSED)
def tag(run: str, changes: tuple[str, ...]) -> None:
    """Tag RUN, to find it by: +TAG adds a tag, -TAG takes one away."""
    directory: Path = find(run)
    now = set_tags(directory, changes).tags
    write(f"{directory.name} is tagged {' '.join(now)}" if now else f"{directory.name} has no tags")
