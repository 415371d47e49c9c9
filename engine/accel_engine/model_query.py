"""Asking something of a run's model, by way of an engine process of its own, which answers and ends."""

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
from accel_engine.launch import spawn
from accel_engine.run import RunReader
from accel_engine.run.paths import latest_checkpoint

ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TPU_LOAD_LIBRARY": "0"}
"""What keeps the process off accelerators, where something may be training."""


class ModelQuery:
    """What is asked of the model of a run's last checkpoint; the process ends with the ``with`` block at the latest.

    Args:
        work: The process's option for it.
        directory: The run's.
        request: What it is reply, of plain values.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run has no model that could be asked.
    """

    def __init__(self, work: str, directory: Path, request: Mapping[str, Any]) -> None:
        _refuse(directory)
        self._request = json.dumps(request)
        self._log = tempfile.TemporaryFile("w+", prefix="accel-tui-engine-")  # noqa: SIM115 (closed at the end)
        try:
            self._process = spawn(work, str(directory), stderr=self._log, environment=ON_THE_CPU)
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
        """Wait for the answer; takes as long as TensorFlow takes to import, and more.

        Args:
            on_progress: Told now and then how many examples were looked at, and of how many.

        Raises:
            RunError: There is none; why.
        """
        process = self._process
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 (both were asked for)
        with contextlib.suppress(OSError):  # it has ended, which the lack of an answer tells
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
        words = self._log.read().strip().splitlines()
        raise RunError(f"the engine ended: {words[-1].strip()}" if words else "the engine ended without a word")

    def cancel(self) -> None:
        """End the process; any thread may do so, and who waits for the answer gets none."""
        with contextlib.suppress(subprocess.SubprocessError, OSError):
            self._process.kill()


def _refuse(directory: Path) -> None:
    with closing(RunReader(directory)) as reader:
        script = reader.info().script
    if script:
        raise RunError(f"run {directory.name} is a script's, which alone keeps its model: there are no checkpoints")
    if not latest_checkpoint(directory):
        raise RunError(
            f"run {directory.name} has no checkpoint, so there is no model to ask: the first is written after an epoch"
        )
