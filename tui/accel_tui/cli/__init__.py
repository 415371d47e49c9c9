"""The command line; :func:`main` is its entry point and turns every error into a line and an exit status."""

import os
import threading
import traceback
from collections.abc import Sequence
from difflib import get_close_matches

import click

from accel_engine import hangup
from accel_engine.errors import AccelError, FieldValue
from accel_tui.cli.output import print_to_stderr
from accel_tui.cli.root import root
from accel_tui.cli.signals import INTERRUPTED

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: The arguments after the program's name; from ``sys.argv`` by default.

    Returns:
        The exit status: 0 for success, 1 for an error, 2 for wrong usage, 130 after Ctrl-C, or the command's.
    """
    if threading.current_thread() is threading.main_thread():
        hangup.survive_checkpoint_signal()
    try:
        return int(root.main(arguments, prog_name="accel-tui", standalone_mode=False) or 0)
    except click.NoSuchOption as error:
        print_to_stderr(f"{_no_such_option(error)}\nTry '{_path(error)} --help'.")
        return 2
    except click.UsageError as error:
        print_to_stderr(f"{_lowered(error.format_message())}\nTry '{_path(error)} --help'.")
        return 2
    except click.ClickException as error:
        print_to_stderr(_lowered(error.format_message()))
        return error.exit_code
    except AccelError as error:
        print_to_stderr(str(error))
        return error.exit_status
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 (no traceback at a terminal)
        if os.environ.get("ACCEL_TUI_DEBUG"):
            print_to_stderr(traceback.format_exc())
            return 1
        print_to_stderr(
            f"unexpected {type(error).__name__}: {error}\n"
            "This is a bug in accel-tui. Please report it in the project's issue tracker, "
            "with the output of the same command under ACCEL_TUI_DEBUG=1."
        )
        return 1


def _path(error: click.UsageError) -> str:
    return error.ctx.command_path if error.ctx else "accel-tui"


def _no_such_option(error: click.NoSuchOption) -> str:
    """The message with the nearest options, also for the short names of other programs such as ``--lr``."""
    from accel_engine.plan.fields import fields_called  # slow to import

    parameters = error.ctx.command.params if error.ctx else []
    options = [
        name
        for option in parameters
        if isinstance(option, click.Option) and not option.hidden
        for name in option.opts
        if name.startswith("--")
    ]

    def called(word: str) -> list[str]:
        found = [option for field in fields_called(word) if (option := str(FieldValue(field))) in options]
        longer = [option for option in found if option.startswith(error.option_name)]
        return [min(longer, key=len)] if longer else found[:1]

    word = error.option_name.removeprefix("--").replace("-", "_")
    near = called(word) or get_close_matches(error.option_name, options, n=2, cutoff=0.7) or called(word.split("_")[0])
    return f"no such option {error.option_name}" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _lowered(message: str) -> str:
    """A message of click's in one line, in lower case as it follows ``accel-tui:``."""
    return message[:1].lower() + " ".join(message[1:].split())
