"""The link to a host, for as long as this program runs: a connection that is opened when it is needed, and again."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from accel_engine.errors import RunError
from accel_engine.hosts.connection import HostConnection, HostLostError, HostRefusedError
from accel_engine.hosts.host_list import Host, find_host
from accel_engine.hosts.host_requests import HostRequest
from accel_engine.requests.protocol.request import unheard

ResultT = TypeVar("ResultT")

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
"""Seconds after which a broken connection is opened again; each failure doubles them."""


class HostLink:
    """The link to a host. Thread-safe.

    Args:
        host: The host.
        may_ask: Whether ``ssh`` may ask the user.

    Attributes:
        host: The host.
    """

    def __init__(self, host: Host, *, may_ask: bool) -> None:
        self.host = host
        self._may_ask = may_ask
        self._lock = threading.Lock()
        self._connection: HostConnection | None = None
        self._problem: RunError | None = None
        self._wait, self._next = _FIRST_WAIT, 0.0

    @property
    def problem(self) -> RunError | None:
        """Why the last try to connect has failed; ``None`` while it is connected, and before the first try."""
        return self._problem

    @property
    def is_connected(self) -> bool:
        """Whether a connection is open."""
        return self._connection is not None and self._connection.is_open

    @property
    def next_try(self) -> float:
        """Seconds until it is tried again to connect."""
        return max(0.0, self._next - time.monotonic())

    def connection(self) -> HostConnection:
        """The open connection, opened now if there is none and it is time to try.

        Raises:
            HostLostError: The host cannot be reached.
            HostRefusedError: The host does not accept the connection, or has another version.
        """
        with self._lock:
            if self._connection and self._connection.is_open:
                return self._connection
            if self._problem and self.next_try > 0:
                raise self._problem
            try:
                self._connection = HostConnection(self.host, may_ask=self._may_ask)
            except (HostLostError, HostRefusedError) as error:
                self._problem = error
                self._wait = min(_LONGEST_WAIT, 2 * self._wait)
                self._next = time.monotonic() + (_LONGEST_WAIT if isinstance(error, HostRefusedError) else self._wait)
                raise
            self._problem, self._wait = None, _FIRST_WAIT
            return self._connection

    def ask(self, request: HostRequest[ResultT], on_part: Callable[[Any], object] = unheard) -> ResultT:
        """Ask, and wait for the result.

        Raises:
            HostLostError: The host cannot be reached, or the connection has broken.
            RunError: The host could not give the result; the message says why.
        """
        return self.connection().ask(request, on_part)

    def close(self) -> None:
        """Close the connection."""
        connection = self._connection
        if connection:
            connection.close()


_links: dict[str, HostLink] = {}
_opening = threading.Lock()
_is_screen = threading.Event()


def never_ask() -> None:
    """From now on, ``ssh`` asks the user nothing, as the terminal shows a dashboard."""
    _is_screen.set()


def link_to(name: str) -> HostLink:
    """The link to a host, which all of this program share.

    Raises:
        UsageError: There is no host of this name.
    """
    host = find_host(name)
    with _opening:
        link = _links.get(name)
        if link is None or link.host != host:
            if link:
                link.close()
            may_ask = not _is_screen.is_set() and sys.stdin is not None and sys.stdin.isatty()
            link = _links[name] = HostLink(host, may_ask=may_ask)
        return link
