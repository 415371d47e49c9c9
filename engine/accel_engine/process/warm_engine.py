"""Keeps an engine that has imported TensorFlow ahead of time, describes models with it and hands it a run.

The engine reads JSON requests from its standard input, one per line, and answers each with a line on its standard
output, until it receives a run.
"""

import contextlib
import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.plan.model_size import ModelSize
from accel_engine.process.engine_process import spawn


@dataclass(frozen=True, slots=True)
class Description(ModelSize):
    """A plan's model, described without training it.

    Attributes:
        layers: Number of layers.
        examples: Number of training examples; ``None`` if unknown.
        data_bytes: Bytes of the training examples in memory; ``None`` if unknown.
        input_shape: Shape of one example.
        classes: Number of classes.
        preprocessing: The class of the model's preprocessing layer; empty if none was found.
        problem: Why there is no description; the numbers are then 0.
    """

    layers: int = 0
    examples: int | None = None
    data_bytes: int | None = None
    input_shape: tuple[int, ...] = ()
    classes: int = 0
    preprocessing: str = ""
    problem: str = ""

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any]) -> Self:
        """Make a description from an engine's reply, in types of JSON."""
        return cls(**{**reply, "input_shape": tuple(reply.get("input_shape") or ())})


class EngineState(StrEnum):
    """State of a warm engine."""

    IMPORTING = "importing"
    READY = "ready"
    HANDED_OVER = "handed over"
    FAILED = "failed"


USABLE = frozenset({EngineState.IMPORTING, EngineState.READY})
"""States in which a warm engine accepts requests and a run."""


class WarmEngine:
    """An engine process that imports TensorFlow ahead of time and waits for a run.

    It claims no accelerator before it has a run. It exits when this process does.

    Args:
        on_change: Called from a thread whenever :attr:`state` changes.

    Attributes:
        process: Its process, whose pipes are its own.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
    """

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self._on_change = on_change or (lambda: None)
        self.state = EngineState.IMPORTING
        self.problem = ""
        self.versions: dict[str, str] = {}
        self._replies: dict[int, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._number = 0
        self._log = tempfile.NamedTemporaryFile(prefix="accel-tui-engine-", suffix=".log")  # noqa: SIM115
        self.process = spawn(stderr=self._log)
        threading.Thread(target=self._listen, name="engine-replies", daemon=True).start()

    @property
    def pid(self) -> int:
        """The engine's process id."""
        return self.process.pid

    def wait_ready(self, timeout: float | None = None) -> bool:
        """Wait until TensorFlow is imported; returns whether it is."""
        with self._changed:
            self._changed.wait_for(lambda: self.state is not EngineState.IMPORTING, timeout)
        return self.state is EngineState.READY

    def describe(self, plan: Plan, timeout: float = 60.0) -> Description:
        """Build the plan's model without values and describe it. Blocks; call it from a thread."""
        with self._changed:
            self._number += 1
            number = self._number
        try:
            self._send({"describe": plan.to_mapping(), "number": number})
        except OSError:
            return Description(problem=self.problem or "the engine has exited")
        with self._changed:
            # It no longer answers once it has a run.
            self._changed.wait_for(lambda: number in self._replies or self.state not in USABLE, timeout)
            reply = self._replies.pop(number, None)
        if reply is None:
            return Description(problem=self.problem or "the engine did not answer")
        return Description.from_reply(reply)

    def train(self, directory: Path) -> None:
        """Hand over a run to train; an engine accepts only one.

        Raises:
            RunError: The engine has exited.
        """
        from accel_engine.run.runs.creation import assign_process  # slow to import, and only needed with a run

        assign_process(directory, self.pid)
        self._set(EngineState.HANDED_OVER)
        try:
            self._send({"run": str(directory)})
        except OSError as error:
            raise RunError(f"the engine has exited: {self.problem or error}") from error
        self.close()  # from now on, only the run's directory is shared

    def close(self) -> None:
        """Close the pipes, and kill the engine unless it has a run."""
        if self.state is not EngineState.HANDED_OVER:
            self.process.kill()
            self.process.wait()
        with self._sending, contextlib.suppress(OSError):
            assert self.process.stdin is not None  # noqa: S101 (it was asked for)
            self.process.stdin.close()
        self._log.close()

    def _send(self, request: dict[str, Any]) -> None:
        with self._sending:  # descriptions and the run are requested in different threads
            assert self.process.stdin is not None  # noqa: S101 (it was asked for)
            if self.process.stdin.closed:
                raise BrokenPipeError("closed")
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()

    def _listen(self) -> None:
        assert self.process.stdout is not None  # noqa: S101 (it was asked for)
        for line in self.process.stdout:
            reply = json.loads(line)
            if "versions" in reply:
                self.versions = reply["versions"]
                if self.state is EngineState.IMPORTING:  # it may have received a run in the meantime
                    self._set(EngineState.READY)
            else:
                with self._changed:
                    self._replies[reply.pop("number")] = reply
                    self._changed.notify_all()
        self.process.stdout.close()
        if self.state is not EngineState.HANDED_OVER:
            self.problem = self._exit_message()
            self._set(EngineState.FAILED)
        self.process.wait()

    def _exit_message(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            lines = Path(self._log.name).read_text(errors="replace").strip().splitlines()
            if lines:
                return f"the engine exited: {lines[-1].strip()}"
        return "the engine exited unexpectedly"

    def _set(self, state: EngineState) -> None:
        with self._changed:
            self.state = state
            self._changed.notify_all()
        self._on_change()
