"""Asks a question of a separate engine process."""

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from accel_engine.errors import RunError
from accel_engine.process.engine_process import spawn

ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "-1", "TPU_LOAD_LIBRARY": "0"}
"""Environment variables that hide accelerators, which may be in use by training."""


class EngineQuery:
    """A question to an engine process, which ends at the end of the ``with`` block at the latest.

    Args:
        arguments: The arguments of the engine process.
        request: The request, JSON-serializable.
        environment: Environment variables of the process; by default, accelerators are hidden.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
    """

    def __init__(
        self, arguments: Sequence[str], request: Mapping[str, Any], environment: Mapping[str, str] = ON_THE_CPU
    ) -> None:
        self._request = json.dumps(request)
        self._log = tempfile.TemporaryFile("w+", prefix="accel-tui-engine-")  # noqa: SIM115 (closed at the end)
        try:
            self._process = spawn(*arguments, stderr=self._log, environment=environment)
        except BaseException:
            self._log.close()
            raise

    def __enter__(self) -> Self:
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

    def answer(
        self,
        on_progress: Callable[[int, int], object] = lambda *_: None,
        on_text: Callable[[str], object] = lambda _: None,
        on_part: Callable[[dict[str, Any]], object] = lambda _: None,
    ) -> dict[str, Any]:
        """Wait for the answer, at least as long as TensorFlow takes to import.

        Args:
            on_progress: Called now and then with the number of examples done, and of all.
            on_text: Called with each part of a text that is written meanwhile.
            on_part: Called with each part of an answer that comes in parts.

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
            elif "text" in reply:
                on_text(reply["text"])
            elif "part" in reply:
                on_part(reply["part"])
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
