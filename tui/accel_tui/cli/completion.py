"""``accel-tui completion``: what a shell completes after ``accel-tui``."""

import click
from click.shell_completion import get_completion_class

from accel_tui.cli.output import write

PROGRAM = "accel-tui"

INSTALL = {
    "bash": "accel-tui completion bash > ~/.local/share/bash-completion/completions/accel-tui",
    "zsh": "accel-tui completion zsh > ~/.zfunc/_accel-tui    # and before compinit: fpath+=~/.zfunc",
    "fish": "accel-tui completion fish > ~/.config/fish/completions/accel-tui.fish",
}
"""How a script is put where its shell finds it. The directory has to be there."""

EPILOG = """\b
Examples:
  accel-tui completion bash \\
      > ~/.local/share/bash-completion/completions/accel-tui
  accel-tui completion zsh > ~/.zfunc/_accel-tui
  accel-tui completion fish > ~/.config/fish/completions/accel-tui.fish

zsh finds it where fpath+=~/.zfunc stands before compinit in ~/.zshrc.
"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(tuple(INSTALL)))
def completion(shell: str) -> None:
    """Print what teaches SHELL to complete commands, options and what they take.

    Models, data, strategies, checks, and the ids and names of runs are completed too. It takes
    effect in shells that are started later. bash needs version 4.4 or later.
    """
    from accel_tui.cli.root import COMPLETE, root

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 (click knows all three)
    script = kind(root, {}, PROGRAM, COMPLETE).source().strip()
    # What is said of a command may have commas, at which click's script for fish would cut it.
    write(script.replace('string split ","', 'string split --max 1 ","'))
    write(f"# Put this where {shell} looks for it: {INSTALL[shell]}")  # last: zsh asks the first line whose it is
