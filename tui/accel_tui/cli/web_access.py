"""Decides which requests of ``accel-tui serve`` are answered: only from its own pages, opened with the secret.

The secret is in the address that the command prints. The server exchanges it for cookies and a path that is as hard to
guess, since browsers send cookies to every port of a host, but only below their path: the server of another user of
the machine cannot ask for them. All addresses below the path need the cookie, ``/static`` too.
"""

import hmac
import ipaddress
import re
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

from accel_engine.errors import UsageError

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every reply: other pages can neither frame nor read it, nothing stores it, no link tells its address."""

WRONG_SECRETS, WRONG_SECRETS_PER_SECOND = 10, 0.5
"""How many wrong secrets are answered as such at once, and then per second; more are told to wait."""

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(?::\d{1,5})?", re.ASCII)


class Rate:
    """Allows ``burst`` at once, and then ``per_second``.

    Args:
        burst: How many at once.
        per_second: How many per second after these.
    """

    def __init__(self, burst: int, per_second: float) -> None:
        self._seconds, self._ahead = 1 / per_second, burst / per_second
        self._until = 0.0

    def take(self) -> float:
        """Count one; returns the seconds to wait for it, as :meth:`wait` does."""
        wait = self.wait()
        self._until = max(self._until, time.monotonic()) + self._seconds
        return wait

    def wait(self) -> float:
        """The seconds until there is room for another; 0 while there is."""
        return max(0.0, self._until + self._seconds - time.monotonic() - self._ahead)


class Access:
    """Checks the name of the server, the secret and the cookies of requests.

    Args:
        host: The address that the server listens on.
        allowed: More names that requests may give the server.

    Raises:
        UsageError: An allowed name is not the name of a host.
    """

    def __init__(self, host: str, allowed: Iterable[str] = ()) -> None:
        self.secret = secrets.token_urlsafe(16)
        """Part of the address that opens the first page."""
        self.path = f"/{secrets.token_urlsafe(16)}"
        """Where the pages are."""
        # The page's script fetches downloads from another path.
        self._cookies = {self.path: secrets.token_urlsafe(32), "/download": secrets.token_urlsafe(32)}
        self._wrong = Rate(WRONG_SECRETS, WRONG_SECRETS_PER_SECOND)
        own = socket.gethostname().lower()
        self.names = {"localhost", host.lower(), own, f"{own}.local", *map(_allowed_name, allowed)}
        """The names of this server, in lower case."""
        # Where no server for names answers, this takes long, and a thread that is no daemon would delay the exit.
        threading.Thread(target=lambda: self.names.add(socket.getfqdn().lower()), daemon=True).start()

    @web.middleware
    async def check(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Answer a request only if it names this server and has the cookie of its path.

        Raises:
            web.HTTPException: The request is refused, in the same way for addresses that exist and others.
        """
        name = _parse_host_header(request.headers.get("Host", ""))
        if not self._is_own_name(name):
            # A page of another site may have made its own name point to this machine.
            raise _misdirected(name)
        if request.path == "/":
            raise self._log_in(request)
        for path, token in self._cookies.items():
            if request.path.startswith(f"{path}/") and is_same(request.cookies.get(_cookie(request), ""), token):
                return await handler(request)
        raise _forbidden()

    def is_own_page(self, request: web.Request) -> bool:
        """Whether a page of this server sent a request; browsers tell the origin of web sockets and do not limit it."""
        return request.headers.get("Origin", "") in {f"{scheme}://{request.host}" for scheme in ("http", "https")}

    def _log_in(self, request: web.Request) -> web.HTTPException:
        """Exchange the secret for cookies, which are in no history and on no screen."""
        if "secret" not in request.query:
            return _forbidden()
        if not is_same(request.query["secret"], self.secret):
            return self._refuse_secret()
        reply = web.HTTPFound(f"{self.path}/")
        # Morsels are kept by name: the second cookie of a name needs its own header.
        for path, token in self._cookies.items():
            cookie = f"{_cookie(request)}={token}; Path={path}/; HttpOnly; SameSite=Strict"
            reply.headers.add("Set-Cookie", cookie)
        return reply

    def _refuse_secret(self) -> web.HTTPException:
        """Limits wrong secrets only: someone who sends many must not keep out who has the right one."""
        if wait := self._wrong.wait():
            text = "Too many wrong secrets. Try again in a moment.\n"
            return web.HTTPTooManyRequests(text=text, headers={"Retry-After": str(int(wait) + 1)})
        self._wrong.take()
        return _forbidden()

    def _is_own_name(self, name: str) -> bool:
        """Whether a name is an address, or a name of this server; addresses cannot be made to point here."""
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self.names
        return True


def _parse_host_header(host: str) -> str:
    """The name or address in a Host header, without the port; empty if it is malformed."""
    match = _HOST.fullmatch(host)
    return match["name"].strip("[]").rstrip(".").lower() if match else ""


async def add_headers(_: web.Request, reply: web.StreamResponse) -> None:
    """Add :data:`HEADERS` to a reply that does not have its own."""
    reply.headers["Server"] = "accel-tui"  # in place of versions
    for name, value in HEADERS.items():
        reply.headers.setdefault(name, value)


def is_same(given: str, expected: str) -> bool:
    """Whether a text from outside, with any characters, is a secret; takes as long if it is not."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def _forbidden() -> web.HTTPForbidden:
    return web.HTTPForbidden(text="Open the full address that accel-tui serve printed, including the secret.\n")


def _misdirected(name: str) -> web.HTTPMisdirectedRequest:
    reason = f"{name} is not known as a name of this server" if name else "The request does not name a host"
    option = f", or start it with --allow-host {name}" if name else ""
    return web.HTTPMisdirectedRequest(text=f"{reason}. Open the address that accel-tui serve printed{option}.\n")


def _allowed_name(host: str) -> str:
    name = _parse_host_header(host)
    if not name or name != host.rstrip(".").lower():
        raise UsageError(f"--allow-host: {host} is not the name of a host; use e.g. dashboard.example.org")
    return name


def _cookie(request: web.Request) -> str:
    """The cookie name, one per port: browsers share the cookies of all ports of a host."""
    return f"accel-tui-{request.host.rpartition(':')[2]}"
