"""``accel-tui run``: runs a script as a run."""

import os
import signal
import socket
from contextlib import suppress

import click

from accel_engine.devices import detect
from accel_engine.scripts.output_parser import check_patterns
from accel_engine.scripts.start_script import Script, create_script_run, environment_for, start_script
from accel_tui.cli.output import print_to_stderr, write

EPILOG = """\b
Examples:
  accel-tui run train.py -- --epochs 5       record each fit of a script
  accel-tui run -m my_package.train          a module, as python -m does
  accel-tui run --detach --devices gpu:1 train.py
  accel-tui run --parse 'loss=(?P<loss>[\\d.]+)' train_torch.py

\b
Exit status: the script's, or
  1  the run cannot be written
  2  wrong usage, or no such script
"""


_WITH_VALUE = ("-m", "--name", "--devices", "--parse")
"""The options whose value is the next word."""


class ScriptCommand(click.Command):
    """A command whose own options end at the script, or after ``-m MODULE``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options; what follows the script belongs to it, with or without ``--`` in between."""
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] != "--":
            word, index = args[index], index + (2 if args[index] in _WITH_VALUE else 1)
            if word == "-m":
                rest = args[index:]
                args = [*args[:index], "--", *(rest[1:] if rest[:1] == ["--"] else rest)]
                break
        return super().parse_args(ctx, args)


@click.command(cls=ScriptCommand, epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("--name", default="", metavar="NAME", help="Name of the run.  [default: the script's]")
@click.option("--devices", metavar="ID,...", help="Devices that the script sees, e.g. gpu:1 or cpu:0.  [default: all]")
@click.option(
    "--parse",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Regular expression with named groups: record values from the lines that the script prints. A group named "
    "step is the number of the step. Can be repeated.",
)
@click.option("--detach", is_flag=True, help="Print the run's id and return; the script runs in the background.")
@click.argument("script", required=False, type=click.Path())
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[--] [ARGUMENTS]...")
def run(
    module: str | None,
    name: str,
    devices: str | None,
    patterns: tuple[str, ...],
    detach: bool,
    script: str | None,
    arguments: tuple[str, ...],
) -> int:
    """Run a Python script unchanged, and record its training as a run.

    Each Keras fit is a part of the run. The script's output is the run's log; with --parse, values in it
    are recorded, too. The script keeps running when this terminal closes.
    """
    _open_streams()
    chosen = _script(module, script, arguments)
    check_patterns(patterns)
    wanted = [each.strip() for each in devices.split(",")] if devices else []
    environment = environment_for(wanted, detect().devices if wanted else [])
    options = [
        *(("--name", name) if name else ()),
        *(("--devices", devices) if devices else ()),
        *(word for pattern in patterns for word in ("--parse", pattern)),
    ]
    directory = create_script_run(chosen, name, options)
    if detach:
        start_script(directory, chosen, patterns=patterns, environment=environment)
        write(directory.name)
        return 0
    from accel_tui.cli.script_terminal import ScriptTerminal

    mine, theirs = socket.socketpair()
    if os.isatty(2):
        print_to_stderr(
            f"run {directory.name}; it keeps running without this terminal: accel-tui watch {directory.name}"
        )
    with ScriptTerminal(mine) as terminal:
        start_script(directory, chosen, patterns=patterns, environment=environment, attach=theirs)
        status = terminal.run()
    return _exit(status)


def _script(module: str | None, script: str | None, arguments: tuple[str, ...]) -> Script:
    """The script to run.

    Raises:
        click.UsageError: There is no script.
    """
    if module is not None:
        return Script(module, (*(() if script is None else (script,)), *arguments), module=True)
    if script is None:
        raise click.UsageError("no script: accel-tui run SCRIPT.py, or accel-tui run -m MODULE")
    return Script(script, arguments[1:] if arguments[:1] == ("--",) else arguments)


def _open_streams() -> None:
    """Open the null device in place of a standard stream that is closed, before another file takes its descriptor."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest descriptor that is free
            os.set_inheritable(descriptor, True)


def _exit(status: int) -> int:
    """Exit as the script did: with its status, or killed by the same signal."""
    if status >= 0:
        return status
    with suppress(OSError):  # SIGKILL has no handler
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status
