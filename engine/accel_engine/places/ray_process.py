"""A process of a run on a node of Ray, which imports this module there, by name."""

import os
import subprocess
import sys
from pathlib import Path


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
