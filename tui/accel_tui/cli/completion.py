"""``accel-tui completion``: prints the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

from accel_tui.cli.output import write

PROGRAM = "accel-tui"

INSTALL = {
    "bash": "accel-tui completion bash > ~/.local/share/bash-completion/completions/accel-tui",
    "zsh": "accel-tui completion zsh > ~/.zfunc/_accel-tui    # and before compinit: fpath+=~/.zfunc",
    "fish": "accel-tui completion fish > ~/.config/fish/completions/accel-tui.fish",
}
"""The command that installs the script of a shell; its directory must exist."""

EPILOG = """\b
Examples:
  accel-tui completion bash \\
      > ~/.local/share/bash-completion/completions/accel-tui
  accel-tui completion zsh > ~/.zfunc/_accel-tui
  accel-tui completion fish > ~/.config/fish/completions/accel-tui.fish

For zsh, add fpath+=~/.zfunc before compinit in ~/.zshrc.
"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(tuple(INSTALL)))
def completion(shell: str) -> None:
    """Print the completion script for SHELL.

    It completes commands, options, models, datasets, strategies, checks, and the ids and names of
    runs. Start a new shell after installation. bash requires version 4.4 or later.
    """
    from accel_tui.cli.root import COMPLETE, root

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 (click knows all three)
    script = kind(root, {}, PROGRAM, COMPLETE).source().strip()
    # click's script for fish would cut descriptions at commas.
    write(script.replace('string split ","', 'string split --max 1 ","'))
    write(f"# Install for {shell}: {INSTALL[shell]}")  # last: zsh reads the command's name from the first line
