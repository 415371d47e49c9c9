"""Decides which requests are answered: by a token, and for browsers only from the server's own pages."""

import hmac
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from accel_engine.errors import UsageError
from accel_engine.files import regular
from accel_engine.model_server.request_error import RequestError

OPEN = ("/livez", "/readyz", "/v2/health/live", "/v2/health/ready", "/", "/page.js", "/page.css")
"""Paths that need no token: the probes of an orchestrator have none, and the page asks the user for it."""

SHORTEST = 16
"""The fewest characters of a token."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer: a page runs the server's own script only, and no other page can frame it."""


@lru_cache(100)
def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host name or an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def read_token(path: Path) -> str:
    """The token of a file.

    Raises:
        UsageError: The file cannot be read, or the token is too short, or is not printable ASCII without blanks.
    """
    try:
        token = regular(path, or_pipe=True).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the token in {path}: {getattr(error, 'strerror', None) or error}") from error
    if len(token) < SHORTEST or not token.isprintable() or " " in token:
        raise UsageError(f"{path}: a token has at least {SHORTEST} letters, digits or signs, and no blanks")
    return token


def check_tls(certificate: Path, key: Path) -> None:
    """Check that a server can use a certificate and its key, PEM files.

    Raises:
        UsageError: The files cannot be read or do not belong together, or the key has a password.
    """
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:  # of ssl, too
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        files = f"the certificate {certificate} with the key {key}"
        raise UsageError(f"cannot use {files} for TLS: {reason}; the key belongs to it, without a password") from error


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """Who is answered."""

    token: str = ""
    """Empty for everybody."""
    is_local: bool = True
    """Whether the server listens on loopback only, where other pages could lead a browser to it."""

    def check(self, path: str, headers: Mapping[str, str]) -> None:
        """Check that a request may be answered.

        Args:
            path: Its path.
            headers: Its headers, by names in small letters.

        Raises:
            RequestError: The token is missing or wrong, or the request comes from another page.
        """
        host = headers.get("host", "")
        if self.is_local and host and not is_loopback(_name_of(host)):
            raise RequestError("the server answers requests to this machine's loopback addresses only", 403)
        origin = headers.get("origin", "")
        if origin and urlsplit(origin).netloc != host:
            raise RequestError("the server answers no requests of other pages", 403)
        if self.token and path not in OPEN and not self.is_right(headers.get("authorization", "")):
            raise RequestError("send the header Authorization: Bearer TOKEN with the server's token", 401)

    def is_right(self, authorization: str) -> bool:
        """Whether a value of ``Authorization`` has the token."""
        scheme, _, given = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())


def _name_of(host: str) -> str:
    return host.rpartition(":")[0] if host.rpartition("]")[2].count(":") == 1 else host
