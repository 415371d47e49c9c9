"""Answers what a host is asked, over standard input and output, until the connection ends: ``accel-tui remote``."""

import os
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from accel_engine.errors import AccelError, format_error
from accel_engine.hosts.compressed_stream import CompressedSink, CompressedSource
from accel_engine.hosts.host_requests import REQUESTS
from accel_engine.json_values import encode
from accel_engine.requests.protocol.channel import Channel, ProtocolError
from accel_engine.requests.protocol.request import Problem, request_function
from accel_engine.run.store.database import SCHEMA_VERSION
from accel_engine.version import __version__

PROTOCOL = 1
"""The version of the messages; both ends must have the same."""

GREETING = "accel-tui-remote "
"""Begins the line that comes before all messages; what a shell prints at its start comes before it."""

SILENCE_SECONDS = 90.0
"""How long the other end may say nothing before it is taken for gone; it asks far more often."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """Says who answers."""

    protocol: int
    version: str
    """The version of accel-tui."""
    schema: int
    """The version of the format of runs."""
    time: float
    """By its clock, in seconds since the Unix epoch."""
    python: str
    """The path of its Python."""


def main(home: str = "") -> int:
    """Answer until standard input ends; returns the exit status.

    Args:
        home: ``ACCEL_TUI_HOME`` of all that this process does; empty to leave it.
    """
    if home:
        os.environ["ACCEL_TUI_HOME"] = os.path.expanduser(home)
    os.umask(0o077)
    source, sink = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    greeting = Greeting(PROTOCOL, __version__, SCHEMA_VERSION, time.time(), sys.executable)
    sink.write(f"{GREETING}{encode(greeting)}\n".encode())
    sink.flush()
    with suppress(BrokenPipeError):
        _answer_all(Channel(CompressedSource(source), CompressedSink(sink)))
    if (name := "accel_engine.hosts.engine_answers") in sys.modules:
        import_module(name).delete_folders()  # waits for a thread that still imports it
    sys.stderr.flush()
    os._exit(0)  # threads may still wait for news


def _answer_all(channel: Channel) -> None:
    watch = _Watch()
    try:
        while (received := channel.receive(*REQUESTS)) is not None:
            watch.note_message()
            message, number = received
            if isinstance(message, Problem):
                channel.send(message, number)
            else:
                threading.Thread(target=_answer, args=(channel, message, number), daemon=True).start()
    except ProtocolError as error:
        channel.send(Problem(f"it does not understand this version: {error}"))


def _answer(channel: Channel, request: Any, number: int) -> None:
    def send(part: Any) -> None:
        channel.send(part, number)

    try:
        answer = request_function(type(request))(request, send)
    except AccelError as error:
        answer = Problem(str(error))
    except Exception as error:  # noqa: BLE001 (the others are still to be answered)
        traceback.print_exc()
        answer = Problem(format_error(error))
    with suppress(OSError):  # nobody waits any more
        channel.send(answer, number)


class _Watch:
    """Ends this process when the other end says nothing: a machine that vanished closes no connection."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def note_message(self) -> None:
        self._last = time.monotonic()

    def _watch(self) -> None:
        while (left := self._last + SILENCE_SECONDS - time.monotonic()) > 0:
            time.sleep(left)
        os._exit(1)
