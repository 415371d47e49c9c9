"""A web server that runs one dashboard per browser page, based on textual-serve.

textual-serve accepts every connection, also from other users of this machine and from pages of other sites. This
server requires a secret in the address and the right origin.
"""

import asyncio
import contextlib
import errno
import hmac
import os
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from accel_engine.errors import UsageError
from accel_tui.terminal.notifications import MARKS

SHUTDOWN_SECONDS = 5.0
"""Seconds that dashboards have to exit before they are killed."""

PAGE = (Path(__file__).parent / "web_page.html").read_text(encoding="utf-8")

POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{}'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "frame-ancestors 'none'"
)
"""The content security policy: all resources from this server, no framing by other pages."""

_DROPPED_VARIABLES = ("TMUX", "STY", "NO_COLOR", "TERM_PROGRAM", "LC_TERMINAL", "COLORTERM", *MARKS)
"""Environment variables that describe the terminal of the server, not of the page."""

DEFAULT_SIZE = (("width", 80), ("height", 24))
"""The size in cells of a page that does not send its own."""


class Dashboard(AppService):
    """The dashboard process of a page."""

    async def run(self) -> None:
        """Forward its output until it exits, then close the page, also after a crash."""
        await super().run()
        await self.remote_close()


class DashboardServer(Server):
    """Serves dashboards to clients that know the secret.

    Args:
        host: The address to listen on.
    """

    def __init__(self, host: str) -> None:
        super().__init__(f"exec {shlex.join([sys.executable, '-m', 'accel_tui'])}", host=host, title="accel-tui")
        self.secret = secrets.token_urlsafe(16)
        self._pages: set[web.WebSocketResponse] = set()

    async def make_app(self) -> web.Application:
        """Create the web application."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/", self.handle_index),
                web.get("/ws", self.handle_websocket),
                web.get("/download/{key}", self.handle_download),
                web.static("/static", self.statics_path),
            ]
        )
        app.on_shutdown.append(self.on_shutdown)
        return app

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002
        """Close all pages, which stops their dashboards."""
        for page in tuple(self._pages):
            await page.close()

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """Return the page; move the secret from the address to a cookie, out of the history and off the screen."""
        if "secret" in request.query:
            if not self._is_secret(request.query["secret"]):
                raise self._forbidden()
            reply = web.HTTPFound("/")
            reply.set_cookie(_cookie(request), self.secret, httponly=True, samesite="Strict")
            return reply
        if not self._is_secret(request.cookies.get(_cookie(request), "")):
            raise self._forbidden()
        nonce = secrets.token_urlsafe(16)
        socket_url = f"{'wss' if request.secure else 'ws'}://{request.host}/ws"
        headers = {
            "Content-Security-Policy": POLICY.format(nonce),
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }
        text = PAGE.replace("SOCKET_URL", socket_url).replace("NONCE", nonce)
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Connect a page to its dashboard: keys in one direction, output in the other."""
        same_origin = request.headers.get("Origin", "").partition("://")[2] == request.host
        if not same_origin or not self._is_secret(request.cookies.get(_cookie(request), "")):
            raise self._forbidden()
        page = web.WebSocketResponse(heartbeat=15)
        await page.prepare(request)

        async def close() -> None:
            await page.close()

        dashboard = Dashboard(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self._pages.add(page)
        try:
            await dashboard.start(*(to_int(request.query.get(name, ""), default) for name, default in DEFAULT_SIZE))
            async for message in page:
                if message.type is web.WSMsgType.TEXT:
                    await _forward(message.json(), page, dashboard)
        finally:
            self._pages.discard(page)
            await dashboard.stop()
        return page

    def _is_secret(self, secret: str) -> bool:
        return hmac.compare_digest(secret.encode(), self.secret.encode())

    def _forbidden(self) -> web.HTTPForbidden:
        return web.HTTPForbidden(text="Open the full address that accel-tui serve printed, including the secret.\n")


async def _forward(message: Any, page: web.WebSocketResponse, dashboard: AppService) -> None:
    """Forward a message of a page's script to its dashboard."""
    match message:
        case ["stdin", keys]:
            await dashboard.send_bytes(keys.encode())
        case ["resize", {"width": width, "height": height}]:
            await dashboard.set_terminal_size(width, height)
        case ["ping", number]:
            await page.send_json(["pong", number])
        case ["blur", *_]:
            await dashboard.blur()
        case ["focus", *_]:
            await dashboard.focus()


def serve(host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP; then stop all dashboards.

    Args:
        host: The address to listen on.
        port: The port; 0 for any free port.
        announce: Called with the URL once the server listens.

    Raises:
        UsageError: The server cannot listen on the address.
    """
    for name in _DROPPED_VARIABLES:
        os.environ.pop(name, None)
    os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}  # the terminal of the page
    try:
        asyncio.run(_serve(host, port, announce))
    finally:
        for child in psutil.Process().children():  # those that hang; the others have exited
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


async def _serve(host: str, port: int, announce: Callable[[str], None]) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = DashboardServer(host)
    runner = web.AppRunner(await server.make_app(), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise UsageError(_explain(error, host, port)) from error
        bound_port = runner.addresses[0][1]
        announce(f"http://{_url_host(host)}:{bound_port}/?secret={server.secret}")
        await stopped.wait()
    finally:
        await runner.cleanup()


def _cookie(request: web.Request) -> str:
    """The cookie name, one per port: browsers share the cookies of all ports of a host."""
    return f"accel-tui-{request.host.rpartition(':')[2]}"


def _url_host(host: str) -> str:
    """The host to use in a URL."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 (the user is warned)
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is already in use; choose another port, or --port 0 for any free port"
    if error.errno == errno.EACCES:
        return f"no permission to listen on port {port}; choose a port above 1023, e.g. --port 8000"
    # From Python 3.13 on, asyncio skips unavailable addresses, and raises without an errno if none is left.
    if isinstance(error, socket.gaierror) or error.errno in (errno.EADDRNOTAVAIL, None):
        return f"{host} is not an address of this machine; use e.g. --host 127.0.0.1"
    return f"cannot listen on {host} port {port}: {error.strerror or error}"
