"""HTTP requests to a service over connections that are kept."""

import http.client
import json
import math
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from accel_engine.errors import AccelError, UsageError, file_errors
from accel_engine.text import printable_line
from accel_engine.user_paths import user_path

SECONDS = 60.0
"""How long an answer may take."""

RETRIES, LONGEST_WAIT = 5, 10.0
"""How often a request that a busy service refuses is sent again, and the most seconds between two tries."""

TOO_LARGE = 413
"""The status of a server that takes only smaller requests."""

_SHOWN = 300
"""Characters of an error that a service tells."""


class ServiceError(AccelError):
    """A service cannot be reached, or refuses a request.

    Attributes:
        status: The HTTP status; 0 if there is none.
        retry_after: Seconds after which it may be sent again; ``None`` if the service does not tell.
    """

    def __init__(self, text: str, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after = retry_after


class UnreachableError(ServiceError):
    """A server does not answer at all."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            ServiceError: The body is not JSON.
        """
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ServiceError("the answer is not JSON") from error


@dataclass(slots=True)
class Transport:
    """Sends requests to one server; usable from several threads, each of which takes a connection that is idle."""

    url: str
    """Scheme, host and port, without a path."""
    token: str = ""
    """Sent as a bearer token, if there is one."""
    ca: str = ""
    """A file with the certificates that are trusted; empty for the system's."""
    checks_name: bool = True
    """Whether the certificate must be for the host's name; not for this machine's own servers."""
    seconds: float = SECONDS
    """How long an answer may take."""
    cure: str = "--token-file FILE has the token"
    """What the error says if the server wants another token."""
    _idle: deque[http.client.HTTPConnection] = field(default_factory=deque)

    def get(self, path: str) -> HttpAnswer:
        """The answer to a GET; see :meth:`send`."""
        return self.send("GET", path)

    def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """Send a request.

        Raises:
            UnreachableError: The server does not answer.
            ServiceError: The status of the answer is not a success.
        """
        all_headers = dict(headers or {})
        if self.token:
            all_headers["Authorization"] = f"Bearer {self.token}"
        try:
            answer = self._exchange(method, path, body, all_headers)
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"{self.url} cannot be reached: {_reason(error)}") from error
        if not 200 <= answer.status < 300:
            seconds = _seconds(answer.headers.get("retry-after", ""))
            raise ServiceError(_refusal(path, answer, self.cure), answer.status, seconds)
        return answer

    def _exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        """Send on an idle connection, or a new one; once more if the server had closed it meanwhile."""
        with suppress(IndexError):
            connection = self._idle.pop()
            try:
                return self._once(connection, method, path, body, headers)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                pass  # it was idle, and the server need not keep it
        return self._once(self._connect(), method, path, body, headers)

    def _once(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpAnswer:
        try:
            connection.request(method, path, body or None, dict(headers))
            response = connection.getresponse()
            data = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return HttpAnswer(response.status, {name.lower(): value for name, value in response.headers.items()}, data)

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "https":
            return http.client.HTTPSConnection(
                host, parts.port, timeout=self.seconds, context=_context(self.ca, self.checks_name)
            )
        connection = http.client.HTTPConnection(host, parts.port, timeout=self.seconds)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def close(self) -> None:
        """Close the connections that are idle."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def __del__(self) -> None:
        self.close()


def read_client_token(path: str) -> str:
    """The token in a file; empty without a file.

    Raises:
        UsageError: The file cannot be read, or has none.
    """
    if not path:
        return ""
    try:
        token = user_path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the token in {path}: {getattr(error, 'strerror', None) or error}") from error
    if not token or not token.isprintable() or " " in token:
        raise UsageError(f"{path} has no token: it needs one line without blanks")
    return token


def patiently(send: Any, *arguments: Any) -> Any:
    """Call a function, and again while a busy service refuses and says when to try again; returns its result.

    Raises:
        ServiceError: The service refuses for another reason, or too often.
    """
    for _ in range(RETRIES):
        try:
            return send(*arguments)
        except ServiceError as error:
            if error.status not in (429, 503) or error.retry_after is None:
                raise
            time.sleep(min(error.retry_after, LONGEST_WAIT))
    return send(*arguments)


def _context(ca: str, checks_name: bool) -> ssl.SSLContext:
    with file_errors(f"{ca} has no certificates", UsageError):
        context = ssl.create_default_context(cafile=ca or None)
    if ca:  # which may be the server's own, signed by another
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = checks_name
    return context


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__


def _refusal(path: str, answer: HttpAnswer, cure: str) -> str:
    """The message of a server that refuses a request, on one line."""
    text = answer.body[: 10 * _SHOWN].decode(errors="replace")
    try:
        found = json.loads(answer.body)
        said = found.get("error", found.get("detail", found)) if isinstance(found, dict) else found
        text = said if isinstance(said, str) else json.dumps(said)
    except ValueError:
        pass  # such as a page of HTML
    text = printable_line(" ".join(text.split()))[:_SHOWN]
    meaning = http.client.responses.get(answer.status, "")
    if answer.status == http.HTTPStatus.UNAUTHORIZED:
        meaning += f" ({cure})"
    return f"{path}: {answer.status} {meaning}{f': {text}' if text else ''}"
