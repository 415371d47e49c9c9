"""A side of the benchmark of training in a separate process, which trains on request."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO


class ServedSide:
    """A process that answers with :func:`serve`.

    Args:
        command: The command that starts it.
        variables: Variables added to its environment.

    Raises:
        SystemExit: The process ended.
    """

    def __init__(self, command: Sequence[object], variables: dict[str, str]) -> None:
        self._command = [str(word) for word in command]
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | variables,
        )
        try:
            self.description = self._read()
            """What the process says of itself once it is ready."""
        except BaseException:  # the benchmark may be ended while it waits
            self.close()
            raise

    def measure(self, seconds: float) -> float:
        """Train for about this long; returns steps per second."""
        assert self._process.stdin
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a side failed; to see why, run: {shlex.join(self._command)}")
        return line.strip()


def take_stdout() -> TextIO:
    """Standard output for answers only: whatever else is printed goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def serve(answers: TextIO, description: str, train: Callable[[], int]) -> None:
    """Train for as many seconds as each line of standard input says, and answer with the steps per second.

    Args:
        answers: Where the answers go.
        description: The first answer.
        train: Takes some steps, of 0.1 s or so; returns their number.
    """
    print(description, file=answers)
    for line in sys.stdin:
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < float(line):
            done += train()
        print(done / (time.perf_counter() - began), file=answers)
