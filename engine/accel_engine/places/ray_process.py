"""What Ray runs on a node, and a host: a process of a run, or a command. Ray imports this module there, by name."""

import os
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO


class NodeProcess:
    """The process of a run on this node."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = ""

    def answer(self, directory: str) -> tuple[str, str, str, int]:
        """Its version, why it cannot train (empty if it can), its address, and a free port."""
        import ray

        from accel_engine.places.ssh_hosts import answer

        found = answer(Path(directory))
        return found.version, found.problem, ray.util.get_node_ip_address(), found.port

    def start(self, directory: str, environment: dict[str, str], folder: str) -> None:
        """Start the process on a run."""
        from accel_engine.places.launched import LOG

        self._directory = directory
        inherited = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        with Path(directory, LOG).open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "accel_engine.places", "start", directory],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=inherited | environment,
                cwd=folder if os.path.isdir(folder) else None,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """Its exit status; ``None`` while it runs."""
        return self._process.poll() if self._process else None

    def end(self) -> None:
        """End its engine."""
        from accel_engine.places.own_process import end_processes

        end_processes(Path(self._directory))


class NodeCommand:
    """A command on this node, whose output is asked for."""

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
        """What it has printed since the last look, with whether as an error; and its exit status once all has come."""
        is_over = not any(reader.is_alive() for reader in self._readers)
        found = []
        while not self._printed.empty():
            found.append(self._printed.get())
        return found, self._process.wait() if self._process and is_over else None

    def end(self) -> None:
        """Interrupt it, as Ctrl-C does."""
        if self._process and self._process.stdin:
            with suppress(OSError):  # it has just ended
                self._process.stdin.write("\n")
                self._process.stdin.flush()

    def _read(self, is_error: bool, stream: IO[str]) -> None:
        for line in stream:
            self._printed.put((is_error, line))
