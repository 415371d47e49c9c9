"""A stand-in for the metadata servers of clouds: HTTP on this machine, with what each demands of a request."""

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

GOOGLE = "/computeMetadata/v1/instance/preempted"
TOKEN = "/latest/api/token"
AMAZON = "/latest/meta-data/spot/instance-action"
AZURE = "/metadata/scheduledevents?api-version=2020-07-01"
AZURE_NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"

DEMANDED: Mapping[str, tuple[str, str]] = {
    GOOGLE: ("Metadata-Flavor", "Google"),
    TOKEN: ("X-aws-ec2-metadata-token-ttl-seconds", "60"),
    AMAZON: ("X-aws-ec2-metadata-token", "a-token"),
    AZURE: ("Metadata", "true"),
    AZURE_NAME: ("Metadata", "true"),
}
"""The header of a request without which the server refuses it."""


class MetadataServer:
    """A server with answers that can be changed; without one it answers 404.

    Attributes:
        requests: The requests that it got: method and path.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self._answers: dict[tuple[str, str], tuple[int, str]] = {("PUT", TOKEN): (200, "a-token")}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _respond(self) -> None:
                server.requests.append((self.command, self.path))
                name, value = DEMANDED.get(self.path, ("Host", self.headers["Host"]))
                allowed = self.headers.get(name) == value
                status, body = server._answers.get((self.command, self.path), (404, "")) if allowed else (403, "")
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            do_GET = do_PUT = _respond  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"

    def answer(self, method: str, path: str, body: str, status: int = 200) -> None:
        """Answer a request with this from now on."""
        self._answers[method, path] = status, body

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
