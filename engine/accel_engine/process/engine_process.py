"""Starts engine processes, from programs that do not import TensorFlow.

An engine that trains a run is detached: programs communicate with it through the run's directory only.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel_engine import hangup, network_namespace
from accel_engine.devices.installation import Installation as Installation
from accel_engine.devices.installation import find_installation as find_installation
from accel_engine.devices.installation import installed_versions
from accel_engine.errors import EngineMissingError
from accel_engine.process.detached import start_detached
from accel_engine.version import __version__


def package_versions() -> dict[str, str]:
    """Package versions for bug reports, by name, read without importing the packages."""
    by_name = {"accel-tui": __version__, "python": platform.python_version()}
    here = find_installation()
    if here.distribution:
        by_name |= {"tensorflow": here.version, "build": here.distribution}
    return by_name | installed_versions("keras", "numpy", "libtpu")


def require_installation() -> None:
    """Raise an error if TensorFlow is missing.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
    """
    if problem := find_installation().problem:
        raise EngineMissingError(problem)


def start_engine(directory: Path, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    """Start a new engine process on a run.

    Args:
        directory: The run's directory.
        environment: Additional environment variables.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run cannot be written, or the system cannot start a process.
    """
    from accel_engine.run.directory.run_paths import LOG  # these are slow to import
    from accel_engine.run.runs.creation import assign_process

    require_installation()
    what = f"the engine of run {directory.name}"
    words = ("-m", "accel_engine.process", "--run", str(directory))
    process = start_detached(what, *words, log=directory / LOG, environment=environment)
    assign_process(directory, process.pid)
    return process


def spawn(
    *arguments: str,
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
    stderr: Any = None,
    environment: Mapping[str, str] | None = None,
    isolated: bool = False,
    new_session: bool = True,
) -> "subprocess.Popen[str]":
    """Start an engine process.

    Args:
        arguments: Its options.
        stdin: Its standard input, as :class:`subprocess.Popen` takes it.
        stdout: Its standard output.
        stderr: Its standard error.
        environment: Additional environment variables.
        isolated: Whether it has its own network, where nobody else can reach it.
        new_session: Whether it has its own session and process group, rather than this process's.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        OSError: The system cannot start a process.
    """
    require_installation()
    command = [sys.executable, "-m", "accel_engine.process", *arguments]
    with hangup.deferred():
        return subprocess.Popen(
            network_namespace.isolated_command(*command) if isolated else command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=os.environ | (environment or {}),
            text=True,
            start_new_session=new_session,
        )
