"""Asks an engine process: starts it, sends a request, and takes the parts and the result of its answer."""

import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from accel_engine.devices.installation import find_installation
from accel_engine.errors import RunError, file_errors
from accel_engine.memory import available_memory
from accel_engine.process.engine_process import spawn
from accel_engine.requests.protocol.channel import Channel, ProtocolError
from accel_engine.requests.protocol.request import (
    ON_THE_CPU,
    WITHOUT_TPU,
    Doing,
    EngineRequest,
    FolderRequest,
    KeptState,
    Problem,
    request_name,
    unheard,
)

ResultT = TypeVar("ResultT")

_MAX_LOG = 1 << 20
"""Bytes of a process's output in which the reason of its exit is looked for."""


class EngineConnection:
    """An engine process, and the channel to it.

    Args:
        request: The type of the request that it will get; ``None`` for several of any type, or for a warm engine.
        kinds: The types of what it may send.
        is_kept: Whether it answers several requests.
        environment: Additional environment variables.
        isolated: Whether it has a separate network.
        new_session: Whether it has a separate session and log, not this process's.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        OSError: The system cannot start a process.
    """

    def __init__(
        self,
        request: type[EngineRequest[Any]] | None,
        kinds: tuple[type, ...],
        *,
        is_kept: bool = False,
        environment: Mapping[str, str] | None = None,
        isolated: bool = False,
        new_session: bool = True,
    ) -> None:
        self.kinds = kinds
        self._log = tempfile.TemporaryFile(prefix="accel-tui-engine-")  # noqa: SIM115 (closed at the end)
        try:
            self.process = spawn(
                *(("--request", request_name(request)) if request else ("--requests",) if is_kept else ()),
                stderr=self._log if new_session else None,
                environment=environment,
                isolated=isolated,
                new_session=new_session,
            )
        except BaseException:
            self._log.close()
            raise
        assert self.process.stdin is not None and self.process.stdout is not None  # noqa: S101, PT018 (both are pipes)
        self.channel = Channel(self.process.stdout, self.process.stdin)

    def messages(self) -> Iterator[tuple[Any, int]]:
        """Yield the messages of the process, each with its number, until it ends.

        Raises:
            RunError: A message is not one that this version of the program understands.
        """
        try:
            while (received := self.channel.receive(*self.kinds)) is not None:
                yield received
        except ProtocolError as error:
            raise RunError(f"the engine answered what this version does not understand: {error}") from error

    @property
    def log(self) -> str:
        """The end of the process's standard error."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), _MAX_LOG, max(0, size - _MAX_LOG)).decode(errors="replace")

    @property
    def exit_message(self) -> str:
        """That the process has exited, with the last line that it has written."""
        lines = self.log.strip().splitlines()
        return f"the engine exited: {lines[-1].strip()}" if lines else "the engine exited unexpectedly"

    def kill(self) -> None:
        """Kill the process, from any thread."""
        with contextlib.suppress(subprocess.SubprocessError, OSError):
            self.process.kill()

    def close(self) -> None:
        """Close the pipes and the log of a process that ends, and wait for its end."""
        self.channel.close()
        self.process.wait()
        self._log.close()


IDLE_SECONDS = 600.0
"""How long a kept process waits for the next request before it ends, which gives its memory back."""


class KeptEngine:
    """One process that answers requests one after another, for a program that asks several.

    It has imported TensorFlow ahead of time, and keeps the last model that was opened. It computes on the CPU and sees
    no accelerator. It ends when nobody has asked for :data:`IDLE_SECONDS`, when a request is cancelled, when it has run
    code of the user or measured, and with this program. Then, or while it is busy, requests get processes that answer
    only them.

    Args:
        idle_seconds: See :data:`IDLE_SECONDS`.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._lock = threading.Lock()
        self._idle_seconds = idle_seconds
        self._idle: EngineConnection | None = None
        self._is_fresh = True
        self._is_closed = False
        self._timer: threading.Timer | None = None

    def warm(self) -> None:
        """Start the process, unless it waits already; does nothing where TensorFlow is missing."""
        if find_installation().problem:
            return
        with self._lock:
            if not self._is_closed and (self._idle is None or self._idle.process.poll() is not None):
                self._wait_with(EngineConnection(None, (), is_kept=True, environment=ON_THE_CPU), is_fresh=True)

    def take(self, request: EngineRequest[Any]) -> EngineConnection | None:
        """The process for a request, or ``None`` if that needs another one."""
        kind = type(request)
        if kind.asks or not _fits(request.environment):
            return None
        self.warm()
        with self._lock:
            if self._idle is None or not (self._is_fresh or kind.is_batch):
                return None
            taken, self._idle = self._idle, None
            self._stop_timer()
        taken.kinds = (*_kinds(kind), KeptState)
        return taken

    def give_back(self, connection: EngineConnection) -> None:
        """Let a process wait for the next request; it ends if another one waits already."""
        with self._lock:
            if self._is_closed or self._idle is not None:
                connection.kill()
                connection.close()
            else:
                self._wait_with(connection, is_fresh=False)

    def close(self) -> None:
        """End the process that waits, and keep none from now on."""
        with self._lock:
            self._is_closed = True
            self._end()

    def _wait_with(self, connection: EngineConnection, *, is_fresh: bool) -> None:
        self._end()
        self._idle, self._is_fresh = connection, is_fresh
        self._timer = threading.Timer(self._idle_seconds, self._end_idle, (connection,))
        self._timer.daemon = True
        self._timer.start()

    def _end_idle(self, connection: EngineConnection) -> None:
        with self._lock:
            if self._idle is connection:
                self._end()

    def _end(self) -> None:
        self._stop_timer()
        idle, self._idle = self._idle, None
        if idle:
            idle.kill()
            idle.close()

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


_kept: KeptEngine | None = None


@contextlib.contextmanager
def keeping(engine: KeptEngine) -> Iterator[None]:
    """Answer requests of this program with a kept process where that is possible, and end the process at the end."""
    global _kept
    _kept = engine
    try:
        yield
    finally:
        _kept = None
        engine.close()


SPARE_MEMORY = 4 << 30
"""Bytes of memory that must be available for a process to be started before it is needed."""


def warm_kept_engine() -> None:
    """Start the kept process where this program keeps one, as a request may follow soon; in a thread."""
    if _kept and available_memory() > SPARE_MEMORY:
        with contextlib.suppress(OSError):  # the request that follows tells why no process can be started
            _kept.warm()


def _fits(environment: Mapping[str, str]) -> bool:
    """Whether a process that sees no accelerator is as good as one with these variables."""
    if environment == ON_THE_CPU:
        return True
    return environment == WITHOUT_TPU and find_installation().distribution == "tensorflow-cpu"


def _kinds(request: type[EngineRequest[Any]]) -> tuple[type, ...]:
    """The types of what a process may send about a request."""
    return tuple({*request.parts, request.result, Problem, Doing})


class EngineCall(Generic[ResultT]):
    """A request to an engine process, which ends at the end of the ``with`` block at the latest, unless it is kept.

    A folder of the request is made, and removed with all files at the end, also where the engine was killed.

    Args:
        request: The request.

    Attributes:
        connection: Its process; missing if a host answers, whose run the request is about.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        AccelError: The request cannot be answered, or its folder cannot be written.
        OSError: The system cannot start a process.
    """

    def __init__(self, request: EngineRequest[ResultT]) -> None:
        request.check()
        kind = type(request)
        self._result = kind.result
        self._lock = threading.Lock()
        self._is_over, self._is_cancelled = False, False
        self._there: Any = None  # a call to the host of a mirrored run
        self._is_usable = False  # whether a kept process may answer further requests
        self._ends = contextlib.ExitStack()
        from accel_engine.requests.protocol.model_reference import host_of_request  # slow to import
        from accel_engine.run.directory.run_paths import host_function

        if host := host_of_request(request):
            self._there = host_function("engine_requests:HostCall")(host, request)
            return
        with contextlib.ExitStack() as ends:
            folder: Path | None = None
            if isinstance(request, FolderRequest):
                folder = ends.enter_context(_folder(request.folder))
                request = replace(request, folder=folder)
            self._kept, taken = _kept, _kept.take(request) if _kept else None
            self.connection = taken or EngineConnection(kind, _kinds(kind), environment=request.environment)
            self._is_taken = taken is not None
            self.connection.channel.folder = folder
            self._ends = ends.pop_all()
        self._request = request

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_over = True
        if self._there:
            return
        if self._kept and self._is_usable and not self._is_cancelled:
            self._kept.give_back(self.connection)
        else:
            self.connection.kill()
            self.connection.close()
            if self._is_taken:
                warm_kept_engine()
        self._ends.close()

    def result(
        self, on_part: Callable[[Any], object] = unheard, on_doing: Callable[[str], object] = unheard
    ) -> ResultT:
        """Wait for the result, at least as long as TensorFlow takes to import.

        Args:
            on_part: Called with each part of the answer that comes before.
            on_doing: Called with what is being done, such as ``opening the model``.

        Raises:
            RunError: There is no result; the message says why.
        """
        if self._there:
            return self._there.result(on_part, on_doing)
        with contextlib.suppress(OSError):  # it has exited; there will be no answer
            self.connection.channel.send(self._request)
        for message, _ in self.connection.messages():
            if isinstance(message, Problem):
                raise RunError(message.text)
            if isinstance(message, self._result):
                return cast("ResultT", message)
            if isinstance(message, Doing):
                on_doing(message.what)
            elif isinstance(message, KeptState):
                self._is_usable = message.is_usable
            else:
                on_part(message)
        raise RunError(self.connection.exit_message)

    def cancel(self) -> None:
        """Kill the process, from any thread; a waiting :meth:`result` raises. Nothing happens after the block."""
        with self._lock:
            if not self._is_over:
                self._is_cancelled = True
                if self._there:
                    self._there.cancel()
                else:
                    self.connection.kill()


def ask(request: EngineRequest[ResultT], on_part: Callable[[Any], object] = unheard) -> ResultT:
    """Ask a request in an engine process; raises as :class:`EngineCall` and :meth:`EngineCall.result` do."""
    with EngineCall(request) as call:
        return call.result(on_part)


@contextlib.contextmanager
def _folder(within: Path | None) -> Iterator[Path]:
    """A folder that is removed with all of its files.

    Args:
        within: The directory that it is made in; that for temporary files if it is ``None``.

    Raises:
        RunError: The directory cannot be written.
    """
    prefix = "accel-tui-" if within is None else ".accel-tui-"
    with file_errors(f"cannot write to {within or tempfile.gettempdir()}"):
        folder = tempfile.TemporaryDirectory(prefix=prefix, dir=within, ignore_cleanup_errors=True)
    with folder as name:
        yield Path(name)
