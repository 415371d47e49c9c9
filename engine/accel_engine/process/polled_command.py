"""Runs a command whose output others ask for: a host, or what Ray runs on a node, which imports this by name."""

import os
import queue
import subprocess
import threading
from contextlib import suppress
from typing import IO


class PolledCommand:
    """A command whose output is asked for, now and then."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._printed: queue.SimpleQueue[tuple[bool, str]] = queue.SimpleQueue()
        self._readers: list[threading.Thread] = []

    def start(self, command: list[str], folder: str) -> None:
        """Start what runs until its input ends."""
        self._process = process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=folder if os.path.isdir(folder) else None,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(False, process.stdout), daemon=True),
            threading.Thread(target=self._read, args=(True, process.stderr), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def news(self) -> tuple[list[tuple[bool, str]], int | None]:
        """The output since the last call, with whether each is an error; and the exit status once all has come."""
        is_over = not any(reader.is_alive() for reader in self._readers)
        found = []
        while not self._printed.empty():
            found.append(self._printed.get())
        if self._process is None or not is_over:
            return found, None
        if self._process.stdin:
            with suppress(OSError):  # it has not read all of it
                self._process.stdin.close()
        return found, self._process.wait()

    def end(self) -> None:
        """Interrupt it, as Ctrl-C does."""
        if self._process and self._process.stdin and not self._process.stdin.closed:
            with suppress(OSError, ValueError):  # it has just ended
                self._process.stdin.write("\n")
                self._process.stdin.flush()

    def _read(self, is_error: bool, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._printed.put((is_error, line))
