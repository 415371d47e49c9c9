"""Runs a query on a run's model in a separate engine process."""

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any

from accel_engine.errors import RunError
from accel_engine.launch.engine_process import spawn
from accel_engine.run import RunReader
from accel_engine.run.run_paths import latest_checkpoint

ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TPU_LOAD_LIBRARY": "0"}
"""Environment variables that hide accelerators, which may be in use by training."""


class ModelQuery:
    """A query on the model of a run's last checkpoint; its process ends at the end of the ``with`` block at the latest.

    Args:
        option: The option of the engine process: ``--predict`` or ``--revalidate``.
        directory: The run's directory.
        request: The request, JSON-serializable.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run has no checkpoint.
    """

    def __init__(self, option: str, directory: Path, request: Mapping[str, Any]) -> None:
        _check_checkpoint(directory)
        self._request = json.dumps(request)
        self._log = tempfile.TemporaryFile("w+", prefix="accel-tui-engine-")  # noqa: SIM115 (closed at the end)
        try:
            self._process = spawn(option, str(directory), stderr=self._log, environment=ON_THE_CPU)
        except BaseException:
            self._log.close()
            raise

    def __enter__(self) -> "ModelQuery":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()
        self._log.close()

    def answer(self, on_progress: Callable[[int, int], object] = lambda *_: None) -> dict[str, Any]:
        """Wait for the answer, at least as long as TensorFlow takes to import.

        Args:
            on_progress: Called now and then with the number of examples done, and of all.

        Raises:
            RunError: The query failed; why.
        """
        process = self._process
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 (both are pipes)
        with contextlib.suppress(OSError):  # it has exited; there will be no answer
            process.stdin.write(self._request)
            process.stdin.close()
        for line in process.stdout:
            reply: dict[str, Any] = json.loads(line)
            if "done" in reply:
                on_progress(reply["done"], reply["of"])
            elif problem := reply.get("problem"):
                raise RunError(problem)
            else:
                return reply
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        raise RunError(f"the engine exited: {lines[-1].strip()}" if lines else "the engine exited unexpectedly")

    def cancel(self) -> None:
        """Kill the process, from any thread; a waiting :meth:`answer` raises."""
        with contextlib.suppress(subprocess.SubprocessError, OSError):
            self._process.kill()


def _check_checkpoint(directory: Path) -> None:
    with closing(RunReader(directory)) as reader:
        script = reader.info().script
    if script:
        raise RunError(f"run {directory.name} was recorded by a script and has no checkpoints")
    if not latest_checkpoint(directory):
        raise RunError(f"run {directory.name} has no checkpoint yet: the first one is written after an epoch")
