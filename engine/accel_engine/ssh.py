"""The command lines that run something on another machine over SSH."""

import os

CONNECT_SECONDS = 15
"""Seconds that ``ssh`` may take to reach a machine, besides the time in which it asks the user."""


def ssh_program() -> str:
    """``ssh``, or the program that the environment variable ``ACCEL_TUI_SSH`` names in its place."""
    return os.environ.get("ACCEL_TUI_SSH") or "ssh"


def ssh_command(target: str, words: str, *, may_ask: bool = False, has_input: bool = True) -> list[str]:
    """The command that runs another one on a machine.

    Args:
        target: The machine, as ``ssh`` takes it.
        words: The command line for the shell there.
        may_ask: Whether ``ssh`` may ask the user, for a passphrase for example.
        has_input: Whether the command there reads the standard input of this one.
    """
    options = ([] if has_input else ["-n"]) + ([] if may_ask else ["-o", "BatchMode=yes"])
    return [ssh_program(), "-T", *options, "-o", f"ConnectTimeout={CONNECT_SECONDS}", "--", target, words]
