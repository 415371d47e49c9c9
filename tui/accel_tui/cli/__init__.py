"""The command line. :func:`main` is what the shell starts; it turns every error into one line and a status."""

import os
import traceback
from collections.abc import Sequence

import click

from accel_engine.errors import AccelError
from accel_tui.cli.output import print_line
from accel_tui.cli.root import root

__all__ = ["main"]

INTERRUPTED = 130
"""The status of a program that Ctrl-C ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the words ask for.

    Args:
        arguments: The words after the program's name; those of this process when left out.

    Returns:
        The status for the shell: 0 when all went well, 1 when it did not, 2 when it was asked wrongly,
        130 when Ctrl-C ended it.
    """
    try:
        return int(root.main(arguments, prog_name="accel-tui", standalone_mode=False) or 0)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "accel-tui"
        print_line(f"{_lowered(error.format_message())}\nTry '{where} --help'.")
        return 2
    except click.ClickException as error:
        print_line(_lowered(error.format_message()))
        return error.exit_code
    except AccelError as error:
        print_line(str(error))
        return error.exit_status
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 (the last stop: nobody at a terminal should meet a traceback)
        if os.environ.get("ACCEL_TUI_DEBUG"):
            print_line(traceback.format_exc())
            return 1
        print_line(
            f"unexpected {type(error).__name__}: {error}\n"
            "This is a mistake in accel-tui. Please report it in the project's issue tracker, "
            "with what the same command shows under ACCEL_TUI_DEBUG=1."
        )
        return 1


def _lowered(message: str) -> str:
    """A message of click's in the form of ours: it goes on from ``accel-tui:``, in one line."""
    return message[:1].lower() + " ".join(message[1:].split())
