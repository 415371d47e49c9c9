"""A connection to a host: a process of ``ssh``, which runs ``accel-tui remote`` there, and what is asked through it."""

import os
import re
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import IO, Any, TypeVar, cast

from accel_engine import hangup
from accel_engine.errors import RunError
from accel_engine.hosts.compressed_stream import CompressedSink, CompressedSource
from accel_engine.hosts.host_list import Host
from accel_engine.hosts.host_requests import REQUESTS, HostRequest, Ping
from accel_engine.hosts.remote import GREETING, PROTOCOL, Greeting
from accel_engine.json_values import decode
from accel_engine.requests.protocol.channel import Channel, ProtocolError
from accel_engine.requests.protocol.request import Problem, unheard
from accel_engine.run.store.database import SCHEMA_VERSION
from accel_engine.ssh import ssh_command
from accel_engine.version import __version__

ResultT = TypeVar("ResultT")

PING_SECONDS = 5.0
"""How long a host may say nothing before it is asked whether it is there."""

SILENCE_SECONDS = 20.0
"""How long a host may say nothing before the connection counts as lost."""

START_SECONDS = 60.0
"""How long the other end may take to greet, where nobody is asked anything."""

_NOISE_BYTES = 1 << 16
"""Most that a shell may print before the greeting."""

_WITHOUT_INTERRUPTS = ("sh", "-c", """trap '' INT QUIT; exec "$@" """, "sh")
"""Runs a program that ignores Ctrl-C, which is for this one: ``ssh`` leaves an ignored signal so."""

_KINDS = tuple({Problem, *(each.result for each in REQUESTS), *(part for each in REQUESTS for part in each.parts)})

_REFUSED = re.compile(
    r"host key verification failed|identification has changed|permission denied|could not resolve|no such identity"
    r"|too many authentication failures|bad configuration option|name or service not known",
    re.IGNORECASE,
)
"""Messages of ``ssh`` after which another try would not help."""


class HostLostError(RunError):
    """A host cannot be reached, or the connection has broken: another try may help."""


class HostRefusedError(RunError):
    """A host refuses, or its accel-tui cannot be used, until the user changes something."""


def remote_words(host: Host, *arguments: str) -> str:
    """The command line for the shell of a host that runs a module of accel-tui there, all of it quoted.

    Args:
        host: The host.
        arguments: The arguments of Python; by default, to answer what is asked.
    """
    if arguments:
        return " ".join((quoted_path(host.python or "python3"), *map(shlex.quote, arguments)))
    home = (quoted_path(host.home),) if host.home else ()
    if host.python:
        return " ".join((quoted_path(host.python), "-P", "-m", "accel_engine.hosts", *home))
    return " ".join(("accel-tui", "remote", *home))


def quoted_path(path: str) -> str:
    """A path for the shell of a host, which replaces ``~`` at its start."""
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)


class HostConnection:
    """An open connection; it cannot be used again once it breaks.

    Args:
        host: The host.
        may_ask: Whether ``ssh`` may ask the user, for a passphrase for example.

    Attributes:
        host: The host.
        greeting: The versions and so on that the other end has sent.
        ahead: Seconds by which its clock is ahead of the clock here, within the time that a message takes.

    Raises:
        HostLostError: The host cannot be reached.
        HostRefusedError: The host can be reached, but not be used.
    """

    def __init__(self, host: Host, *, may_ask: bool = False) -> None:
        self.host = host
        self._log = tempfile.TemporaryFile(prefix="accel-tui-ssh-")  # noqa: SIM115 (closed at the end)
        self._over = threading.Event()
        self._closing = threading.Lock()
        self._waiting: dict[int, SimpleQueue[Any]] = {}
        self._numbers = count(1)
        self._heard = time.monotonic()
        ssh = ssh_command(host.target, remote_words(host), may_ask=may_ask)
        try:
            with hangup.deferred():
                self._process = subprocess.Popen(
                    [*(_WITHOUT_INTERRUPTS if may_ask else ()), *ssh],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    bufsize=0,
                    start_new_session=not may_ask,  # a question needs the terminal
                )
        except OSError as error:
            self._log.close()
            raise HostRefusedError(f"{host.name}: ssh cannot be started: {error.strerror}") from error
        stdin, stdout = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        timer = None if may_ask else threading.Timer(START_SECONDS, self._kill)
        if timer:
            timer.daemon = True
            timer.start()
        try:
            self.greeting = self._greeted(stdout)
        except BaseException:
            self.close()
            stdout.close()
            raise
        finally:
            if timer:
                timer.cancel()
        self.ahead = self.greeting.time - time.time()
        self._source, self._sink = CompressedSource(stdout), CompressedSink(stdin)
        self._channel = Channel(self._source, self._sink)
        threading.Thread(target=self._receive, name=f"host-{host.name}", daemon=True).start()
        threading.Thread(target=self._watch, name=f"host-{host.name}-watch", daemon=True).start()

    @property
    def is_open(self) -> bool:
        """Whether anything can be asked."""
        return not self._over.is_set()

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes received and sent through ``ssh``, compressed."""
        return self._source.size, self._sink.size

    def ask(self, request: HostRequest[ResultT], on_part: Callable[[Any], object] = unheard) -> ResultT:
        """Ask, and wait for the result; any number of threads may ask.

        Raises:
            HostLostError: The connection has broken.
            RunError: The host could not give the result; the message says why.
        """
        number = next(self._numbers)
        answers: SimpleQueue[Any] = SimpleQueue()
        self._waiting[number] = answers
        try:
            if self._over.is_set():
                raise self._lost()
            try:
                self._channel.send(request, number)
            except (OSError, ValueError) as error:
                raise self._lost() from error
            while not isinstance(answer := answers.get(), type(request).result):
                if answer is None:
                    raise self._lost()
                if isinstance(answer, Problem):
                    raise RunError(f"{self.host.name}: {answer.text}")
                on_part(answer)
            return cast("ResultT", answer)
        finally:
            del self._waiting[number]

    def close(self) -> None:
        """End the connection; whoever waits for an answer gets none."""
        with self._closing:
            if self._over.is_set() and self._log.closed:
                return
            self._over.set()
            self._kill()
            with suppress(OSError, ValueError):
                cast("IO[bytes]", self._process.stdin).close()
            self._process.wait()
            self._why = self._said()
            self._log.close()
        for answers in list(self._waiting.values()):
            answers.put(None)

    def _greeted(self, stdout: IO[bytes]) -> Greeting:
        """The greeting, after whatever a shell prints before it."""
        seen = b""
        while len(seen) < _NOISE_BYTES:
            line = b""
            while not line.endswith(b"\n") and len(line) < _NOISE_BYTES:  # byte by byte: what follows is compressed
                byte = stdout.read(1)
                if not byte:
                    raise self._unreachable(seen + line)
                line += byte
            seen += line
            if line.startswith(GREETING.encode()):
                return self._checked(line.decode(errors="replace").removeprefix(GREETING))
        raise HostRefusedError(f"{self.host.name}: its shell prints too much before accel-tui answers")

    def _checked(self, text: str) -> Greeting:
        try:
            greeting = decode(text, Greeting)
        except ValueError as error:
            raise HostRefusedError(f"{self.host.name}: its accel-tui has a version that is unknown here") from error
        if (greeting.protocol, greeting.schema) != (PROTOCOL, SCHEMA_VERSION):
            raise HostRefusedError(
                f"{self.host.name}: it has accel-tui {greeting.version}, and this is {__version__}, which does not "
                f"understand it: install the same version on both: accel-tui hosts install {self.host.name}"
            )
        return greeting

    def _unreachable(self, printed: bytes) -> RunError:
        self._process.wait()
        status = self._process.returncode
        said = self._said() or printed.decode(errors="replace").strip().rpartition("\n")[2]
        name = self.host.name
        if status == 255:  # ssh's own
            kind = HostRefusedError if _REFUSED.search(self._said(whole=True)) else HostLostError
            if "identification has changed" in self._said(whole=True).lower():
                said = (
                    "its host key has changed: if the machine was installed anew, remove the old key with ssh-keygen "
                    f"-R {self.host.target}; if not, somebody may be in between"
                )
            elif "host key verification failed" in said.lower():
                said = f"its host key is not known here: run ssh {self.host.target} once, and accept the key"
            return kind(f"{name}: {said or 'ssh cannot connect'}")
        if status < 0:
            return HostLostError(f"{name}: it did not answer in {START_SECONDS:.0f} s")
        what = self.host.python or "accel-tui"
        return HostRefusedError(
            f"{name}: {what} does not answer there ({said or f'exit status {status}'}): install it with accel-tui "
            f"hosts install {name}, or name the Python that has it: accel-tui hosts add {name} --python PATH"
        )

    def _said(self, *, whole: bool = False) -> str:
        """The last line that ``ssh`` and the other end have written to standard error, or all of it."""
        if self._log.closed:
            return self._why
        text = os.pread(self._log.fileno(), _NOISE_BYTES, 0).decode(errors="replace").strip()
        return text if whole else text.rpartition("\n")[2].strip()

    def _lost(self) -> HostLostError:
        self.close()
        return HostLostError(f"{self.host.name}: the connection is lost{f' ({self._why})' if self._why else ''}")

    def _kill(self) -> None:
        with suppress(OSError):
            self._process.kill()

    def _receive(self) -> None:
        with suppress(ProtocolError):
            while (received := self._channel.receive(*_KINDS)) is not None:
                self._heard = time.monotonic()
                message, number = received
                if answers := self._waiting.get(number):
                    answers.put(message)
        self.close()
        with suppress(OSError, ValueError):
            cast("IO[bytes]", self._process.stdout).close()

    def _watch(self) -> None:
        """Notice that nobody is there any more, which a machine that vanished does not tell."""
        while not self._over.wait(PING_SECONDS):
            silent = time.monotonic() - self._heard
            if silent > SILENCE_SECONDS:
                self.close()
            elif silent > PING_SECONDS:
                threading.Thread(target=self._ping, daemon=True).start()  # sending may wait for the network

    def _ping(self) -> None:
        with suppress(RunError):
            self.ask(Ping())
