"""Asks an engine process: starts it, sends a request, and takes the parts and the result of its answer."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from accel_engine.errors import RunError
from accel_engine.process.engine_process import spawn
from accel_engine.requests.protocol.channel import Channel, ProtocolError
from accel_engine.requests.protocol.request import EngineRequest, FolderRequest, Problem, request_name, unheard

ResultT = TypeVar("ResultT")

_MAX_LOG = 1 << 20
"""Bytes of a process's output in which the reason of its exit is looked for."""


class EngineConnection:
    """An engine process, and the channel to it.

    Args:
        request: The type of the request that it will get; ``None`` for a warm engine.
        kinds: The types of what it may send.
        environment: Additional environment variables.
        isolated: Whether it has a separate network.
        new_session: Whether it has a separate session and log, not this process's.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
    """

    def __init__(
        self,
        request: type[EngineRequest[Any]] | None,
        kinds: tuple[type, ...],
        *,
        environment: Mapping[str, str] | None = None,
        isolated: bool = False,
        new_session: bool = True,
    ) -> None:
        self._kinds = kinds
        self._log = tempfile.TemporaryFile(prefix="accel-tui-engine-")  # noqa: SIM115 (closed at the end)
        try:
            self.process = spawn(
                *(("--request", request_name(request)) if request else ()),
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
        """What the process sends, each with its number, until it ends.

        Raises:
            RunError: It is not what this version of the program understands.
        """
        try:
            while (received := self.channel.receive(*self._kinds)) is not None:
                yield received
        except ProtocolError as error:
            raise RunError(f"the engine answered what this version does not understand: {error}") from error

    @property
    def log(self) -> str:
        """What the process has written to its standard error, the last of it."""
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


class EngineCall(Generic[ResultT]):
    """A request to an engine process, which ends at the end of the ``with`` block at the latest.

    A folder of the request is made, and removed with all files at the end, also where the engine was killed.

    Args:
        request: The request.

    Attributes:
        connection: Its process.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        AccelError: The request cannot be answered, or its folder cannot be written.
    """

    def __init__(self, request: EngineRequest[ResultT]) -> None:
        request.check()
        kind = type(request)
        self._result = kind.result
        self._ends = contextlib.ExitStack()
        with contextlib.ExitStack() as ends:
            folder: Path | None = None
            if isinstance(request, FolderRequest):
                folder = ends.enter_context(_folder(request.folder))
                request = replace(request, folder=folder)
            kinds = tuple({*kind.parts, kind.result, Problem})
            self.connection = EngineConnection(kind, kinds, environment=request.environment)
            self.connection.channel.folder = folder
            self._ends = ends.pop_all()
        self._request = request

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        self.connection.close()
        self._ends.close()

    def result(self, on_part: Callable[[Any], object] = unheard) -> ResultT:
        """Wait for the result, at least as long as TensorFlow takes to import.

        Args:
            on_part: Called with each part of the answer that comes before.

        Raises:
            RunError: There is none; why.
        """
        with contextlib.suppress(OSError):  # it has exited; there will be no answer
            self.connection.channel.send(self._request)
        for message, _ in self.connection.messages():
            if isinstance(message, Problem):
                raise RunError(message.text)
            if isinstance(message, self._result):
                return cast("ResultT", message)
            on_part(message)
        raise RunError(self.connection.exit_message)

    def cancel(self) -> None:
        """Kill the process, from any thread; a waiting :meth:`result` raises."""
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
    try:
        folder = tempfile.TemporaryDirectory(prefix=prefix, dir=within, ignore_cleanup_errors=True)
    except OSError as error:
        raise RunError(f"cannot write to {within or tempfile.gettempdir()}: {error.strerror or error}") from error
    with folder as name:
        yield Path(name)
