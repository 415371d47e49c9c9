"""A web server that runs one dashboard per browser page, based on textual-serve.

textual-serve accepts every connection, also from other users of this machine and from pages of other sites. This
server checks requests (:mod:`accel_tui.cli.web_access`) and messages, which may be anything.
"""

import asyncio
import contextlib
import errno
import json
import logging
import os
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from aiohttp import WSCloseCode, web
from aiohttp.http_exceptions import HttpProcessingError
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from accel_engine.errors import UsageError
from accel_tui.cli.web_access import Access, Rate, add_headers
from accel_tui.terminal.notifications import MARKS

SHUTDOWN_SECONDS = 5.0
"""Seconds that dashboards have to exit before they are killed."""

PAGE = (Path(__file__).parent / "web_page.html").read_text(encoding="utf-8")

POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{}'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of a page: all resources from this server, no framing by other pages."""

MAX_PAGES = 16
"""How many pages may be open; each has a process."""

_DROPPED_VARIABLES = ("TMUX", "STY", "NO_COLOR", "TERM_PROGRAM", "LC_TERMINAL", "COLORTERM", *MARKS)
"""Environment variables that describe the terminal of the server, not of the page."""

DEFAULT_SIZE = (("width", 80), ("height", 24))
"""The size in cells of a page that does not send its own."""

MAX_BYTES = 1 << 20
"""The largest message, such as a pasted text; a larger one closes the page."""

MESSAGES, MESSAGES_PER_SECOND = 1_000, 200.0
"""How many messages are read at once, and then per second; a page that sends more waits."""

MAX_SIZE = (1_000, 500)
"""The largest terminal in columns and rows; larger ones are shown in a part of the page."""

_MAX_PING = 32
"""Characters of a ping's number."""


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
        allowed: More names that requests may give the server.
    """

    def __init__(self, host: str, allowed: Iterable[str] = ()) -> None:
        super().__init__(f"exec {shlex.join([sys.executable, '-m', 'accel_tui'])}", host=host, title="accel-tui")
        self.access = Access(host, allowed)
        self._pages: set[web.WebSocketResponse] = set()

    async def make_app(self) -> web.Application:
        """Create the web application."""
        app = web.Application(middlewares=[self.access.check])
        path = self.access.path
        app.add_routes(
            [
                web.get(f"{path}/", self.handle_index),
                web.get(f"{path}/ws", self.handle_websocket),
                web.get("/download/{key}", self.handle_download),
                web.static(f"{path}/static", self.statics_path),
            ]
        )
        app.on_response_prepare.append(add_headers)
        app.on_shutdown.append(self.on_shutdown)
        return app

    async def make_runner(self) -> web.AppRunner:
        """Create what runs the application, with no log of requests nor of malformed ones."""
        logger = logging.getLogger(__name__)
        logger.addFilter(_is_mistake)
        return web.AppRunner(await self.make_app(), access_log=None, logger=logger, shutdown_timeout=SHUTDOWN_SECONDS)

    async def on_shutdown(self, app: web.Application) -> None:
        """Close all pages, which stops their dashboards."""
        for page in tuple(self._pages):
            await page.close()

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """Return the page."""
        nonce = secrets.token_urlsafe(16)
        headers = {"Content-Security-Policy": POLICY.format(nonce)}
        return web.Response(text=PAGE.replace("NONCE", nonce), content_type="text/html", headers=headers)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Connect a page to its dashboard: keys in one direction, output in the other."""
        if not self.access.is_own_page(request):
            raise web.HTTPForbidden(text="Only pages of this server may connect.\n")
        if len(self._pages) >= MAX_PAGES:
            raise web.HTTPServiceUnavailable(text=f"{MAX_PAGES} dashboards are open: close one of their pages.\n")
        page = web.WebSocketResponse(heartbeat=15, max_msg_size=MAX_BYTES)
        self._pages.add(page)
        try:
            await page.prepare(request)
            await self._run_dashboard(page, request)
        finally:
            self._pages.discard(page)
        return page

    async def _run_dashboard(self, page: web.WebSocketResponse, request: web.Request) -> None:
        """Run the dashboard of a page until one of them is closed."""

        async def close() -> None:
            await page.close()

        dashboard = Dashboard(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        try:
            size = (to_int(request.query.get(name, ""), default) for name, default in DEFAULT_SIZE)
            await dashboard.start(*_fitting_size(*size))
            await _forward_messages(page, dashboard)
        finally:
            await dashboard.stop()


def serve_dashboards(host: str, port: int, allowed: Iterable[str], announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP; then stop all dashboards.

    Args:
        host: The address to listen on.
        port: The port; 0 for any free port.
        allowed: More names that requests may give the server.
        announce: Called with the URL once the server listens.

    Raises:
        UsageError: The server cannot listen on the address, or an allowed name is not the name of a host.
    """
    for name in _DROPPED_VARIABLES:
        os.environ.pop(name, None)
    os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}  # the terminal of the page
    others = {*psutil.Process().children()}
    try:
        asyncio.run(_serve(host, port, allowed, announce))
    finally:
        for child in {*psutil.Process().children()} - others:  # dashboards that hang; the others have exited
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


async def _serve(host: str, port: int, allowed: Iterable[str], announce: Callable[[str], None]) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = DashboardServer(host, allowed)
    runner = await server.make_runner()
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise UsageError(_explain(error, host, port)) from error
        bound_port = runner.addresses[0][1]
        announce(f"http://{_url_host(host)}:{bound_port}/?secret={server.access.secret}")
        await stopped.wait()
    finally:
        await runner.cleanup()


def _is_mistake(record: logging.LogRecord) -> bool:
    """Whether what is logged is an error of ours: anyone can send malformed requests."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


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
    # From Python 3.13 on, asyncio skips unavailable addresses, and raises without an errno if all are.
    if isinstance(error, socket.gaierror) or error.errno in (errno.EADDRNOTAVAIL, None):
        return f"{host} is not an address of this machine; use e.g. --host 127.0.0.1"
    return f"cannot listen on {host} port {port}: {error.strerror or error}"


async def _forward_messages(page: web.WebSocketResponse, dashboard: AppService) -> None:
    """Forward keys, sizes and the focus until the page is closed; a malformed message closes it."""
    rate = Rate(MESSAGES, MESSAGES_PER_SECOND)
    async for message in page:
        await asyncio.sleep(rate.take())
        content = None
        if message.type is web.WSMsgType.TEXT:
            with suppress(ValueError, RecursionError):  # RecursionError: nested too deeply
                content = json.loads(message.data)
        if not await _forward(content, page, dashboard):
            await page.close(code=WSCloseCode.POLICY_VIOLATION, message=b"malformed message")


async def _forward(content: Any, page: web.WebSocketResponse, dashboard: AppService) -> bool:
    """Forward the content of a message; returns whether it is well formed."""
    match content:
        case ["stdin", str(keys)]:
            await dashboard.send_bytes(keys.encode(errors="replace"))
        case ["resize", {"width": int(width), "height": int(height)}]:
            await dashboard.set_terminal_size(*_fitting_size(width, height))
        case ["ping", str(number)] if len(number) <= _MAX_PING:
            await page.send_json(["pong", number])
        case ["blur"]:
            await dashboard.blur()
        case ["focus"]:
            await dashboard.focus()
        case _:
            return False
    return True


def _fitting_size(width: int, height: int) -> tuple[int, int]:
    """The columns and rows nearest to a size that a terminal can have."""
    return max(1, min(width, MAX_SIZE[0])), max(1, min(height, MAX_SIZE[1]))
