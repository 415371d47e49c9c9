"""Starts processes of the program that outlive the process and the terminal which start them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel_engine import hangup
from accel_engine.errors import RunError


def start_detached(
    what: str, module: str, *arguments: str, log: Path, environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[str]":
    """Start a module of the program in a session of its own, without input.

    Args:
        what: What it is, for errors: ``the search digits``.
        module: Its dotted name.
        arguments: Its arguments.
        log: The file that its output is added to, which only the user can read.
        environment: Additional environment variables.

    Raises:
        RunError: The log cannot be written, or the system cannot start a process.
    """
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise RunError(f"cannot write the log of {what}: {error.strerror}") from error
    try:
        with hangup.held():
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | (environment or {}),
                text=True,
                start_new_session=True,
            )
    except OSError as error:  # such as too little memory
        raise RunError(f"cannot start {what}: {error.strerror}") from error
    finally:
        os.close(output)


def leave(process: "subprocess.Popen[Any]") -> None:
    """Let a process outlive this one: without this, Python would warn at the exit that nobody has waited for it."""
    process.returncode = 0
