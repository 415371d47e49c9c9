"""Keeps an engine that has imported TensorFlow ahead of time, describes models with it and hands it a run."""

import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.requests.describe_model import Description, ModelRequest
from accel_engine.requests.protocol.request import Problem


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

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
    """

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self._on_change = on_change or (lambda: None)
        self.state = EngineState.IMPORTING
        self.problem = ""
        self.versions: dict[str, str] = {}
        self._replies: dict[int, Description | Problem] = {}
        self._changed = threading.Condition()
        self._number = 0
        from accel_engine.process.engine_call import EngineConnection  # the first screen is painted without these
        from accel_engine.requests.protocol.request import EngineReady

        self._connection = EngineConnection(None, (EngineReady, Description, Problem))
        self.process = self._connection.process
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
            self._send(ModelRequest(plan, loads_data=False), number)
        except OSError:
            return Description(problem=self.problem or "the engine has exited")
        with self._changed:
            # It no longer answers once it has a run.
            self._changed.wait_for(lambda: number in self._replies or self.state not in USABLE, timeout)
            reply = self._replies.pop(number, None)
        if reply is None:
            return Description(problem=self.problem or "the engine did not answer")
        return Description(problem=reply.text) if isinstance(reply, Problem) else reply

    def train(self, directory: Path) -> None:
        """Hand over a run to train; an engine accepts only one.

        Raises:
            RunError: The engine has exited.
        """
        from accel_engine.requests.protocol.request import RunHandedOver
        from accel_engine.run.runs.creation import assign_process  # slow to import, and only needed with a run

        assign_process(directory, self.pid)
        self._set(EngineState.HANDED_OVER)
        try:
            self._send(RunHandedOver(directory))
        except OSError as error:
            raise RunError(f"the engine has exited: {self.problem or error}") from error
        self.close()  # from now on, only the run's directory is shared

    def close(self) -> None:
        """Send nothing more, and kill the engine unless it has a run."""
        if self.state is not EngineState.HANDED_OVER:
            self.process.kill()
            self.process.wait()
        self._connection.channel.stop_sending()

    def _send(self, message: object, number: int = 0) -> None:
        self._connection.channel.send(message, number)

    def _listen(self) -> None:
        try:
            for message, number in self._connection.messages():
                if isinstance(message, Description | Problem):
                    with self._changed:
                        self._replies[number] = message
                        self._changed.notify_all()
                else:
                    self.versions = dict(message.versions)
                    if self.state is EngineState.IMPORTING:  # it may have received a run in the meantime
                        self._set(EngineState.READY)
        except RunError as error:
            self.problem = str(error)
            self._connection.kill()
        if self.state is not EngineState.HANDED_OVER:
            self.problem = self.problem or self._connection.exit_message
            self._set(EngineState.FAILED)
        self._connection.close()

    def _set(self, state: EngineState) -> None:
        with self._changed:
            self.state = state
            self._changed.notify_all()
        self._on_change()
