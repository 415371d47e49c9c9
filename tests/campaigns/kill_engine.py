"""An engine that a campaign can kill.

Most are forks of this process, which has imported TensorFlow and has used none of it: as a warm engine of the
dashboard, and in a third of the time. The others are started by the command.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import psutil

from accel_engine.engine_main import tensorflow_import
from accel_engine.errors import RunError
from accel_engine.run import RunReader
from accel_engine.run.directory.lock import is_locked
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.runs.creation import assign_process

tensorflow_import.prepare()  # before TensorFlow is imported

from accel_engine.engine_main.main import main  # noqa: E402 (see above)
from accel_engine.training import trainer as _trainer  # noqa: E402, F401 (so that no engine has to import it)

TIMEOUT = 240.0
"""Seconds after which an engine counts as hanging."""

LAST_SECONDS = 45.0
"""Longest time that the other processes of a cluster take to exit after one was killed."""


class HangError(Exception):
    """An engine did not exit."""


class Engine:
    """An engine and its child processes.

    Args:
        directory: The run that it trains.
        process: Its process id; a child of this process, or not.
    """

    def __init__(self, directory: Path, process: int) -> None:
        self.directory = directory
        self._process = psutil.Process(process)

    @property
    def is_alive(self) -> bool:
        """Whether it runs; the threads of a killed process may outlive its zombie for a moment, with the run's lock."""
        with suppress(ChildProcessError):
            os.waitpid(self._process.pid, os.WNOHANG)
        return _is_running(self._process) or is_locked(self.directory)

    def kill(self, rng: random.Random) -> None:
        """Kill it. With several processes: all, or any one, after which the others end by themselves."""
        everyone = self._family()
        for process in everyone if rng.random() < 0.6 else [rng.choice(everyone)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._wait(everyone, LAST_SECONDS)

    def wait(self) -> None:
        """Wait for its exit.

        Raises:
            HangError: It takes longer than :data:`TIMEOUT`.
        """
        self._wait([], TIMEOUT)

    def _wait(self, others: list[psutil.Process], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.is_alive or any(map(_is_running, others)):
            if time.monotonic() > deadline:
                for process in {*others, *self._family()}:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
                raise HangError(f"a process was left after {seconds:g} s")
            time.sleep(0.01)

    def _family(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return [self._process, *self._process.children(recursive=True)]
        return [self._process]


def fork(directory: Path) -> Engine:
    """Start an engine that trains a run as a fork of this process."""
    process = os.fork()
    if process:
        with suppress(RunError):  # it has begun, and writes this itself
            assign_process(directory, process)
        return Engine(directory, process)
    status = 1
    try:
        os.setsid()
        log = os.open(directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(log, stream)
        sys.argv = ["accel_engine.process", "--run", str(directory)]
        status = main()
    finally:
        os._exit(status)


def start_by_command(find: Callable[[str], Path], *words: str) -> Engine:
    """Start an engine with ``accel-tui WORDS --detach``.

    Args:
        find: Finds the run that it prints.
        words: The words of the command.
    """
    command = [sys.executable, "-m", "accel_tui", *words, "--detach"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    directory = find(done.stdout.strip())
    with closing(RunReader(directory)) as reader:
        process = reader.info().pid
    assert process is not None, "no engine is assigned"
    return Engine(directory, process)


def _is_running(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
