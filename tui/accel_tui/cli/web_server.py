"""A web server with a dashboard for each page that is opened, made of textual-serve's parts.

Those trust whoever connects. A page of another site could connect as well, and so could every user of this machine:
so here only who came by an address with the right secret is let in, and only from pages of this server.
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

import psutil
from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from accel_engine.errors import UsageError
from accel_tui.terminal.notifications import MARKS

END_SECONDS = 5.0
"""How long dashboards may take to end before they are ended."""

PAGE = (Path(__file__).parent / "serving.html").read_text(encoding="utf-8")

POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{}'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "frame-ancestors 'none'"
)
"""Nothing of a page comes from anywhere else, and no other page may frame it."""

_NOT_PASSED_ON = ("TMUX", "STY", "NO_COLOR", "TERM_PROGRAM", "LC_TERMINAL", "COLORTERM", *MARKS)
"""Variables that tell of the terminal that the server runs in."""


SMALLEST = (("width", 80), ("height", 24))
"""What is taken for a page's cells where it does not say them."""


class Dashboard(AppService):
    """The dashboard of a page, as a process."""

    async def run(self) -> None:
        """Pass on what it shows until it ends, and then close its page, though it had no time to say so."""
        await super().run()
        await self.remote_close()


class Dashboards(Server):
    """Serves dashboards to who knows the secret.

    Args:
        host: The address that is listened on.
    """

    def __init__(self, host: str) -> None:
        super().__init__(f"exec {shlex.join([sys.executable, '-m', 'accel_tui'])}", host=host, title="accel-tui")
        self.secret = secrets.token_urlsafe(16)
        self._pages: set[web.WebSocketResponse] = set()

    async def make_app(self) -> web.Application:
        """Make what an HTTP server runs."""
        return await self._make_app()

    async def on_startup(self, app: web.Application) -> None:
        """Say nothing: the address is told once it can be opened."""

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002
        """Let all pages go, which ends their dashboards."""
        for page in tuple(self._pages):
            await page.close()

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """The page. Its secret goes from the address to a cookie, where neither history nor screens show it."""
        if "secret" in request.query:
            if not self._knows(request.query["secret"]):
                raise self._refusal()
            reply = web.HTTPFound("/")
            reply.set_cookie(_cookie(request), self.secret, httponly=True, samesite="Strict")
            return reply
        if not self._knows(request.cookies.get(_cookie(request), "")):
            raise self._refusal()
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
        """What a page is connected by: the keys to its dashboard, and what that shows."""
        mine = request.headers.get("Origin", "").partition("://")[2] == request.host
        if not mine or not self._knows(request.cookies.get(_cookie(request), "")):
            raise self._refusal()
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
            await dashboard.start(*(to_int(request.query.get(name, ""), least) for name, least in SMALLEST))
            await self._process_messages(page, dashboard)
        finally:
            self._pages.discard(page)
            await dashboard.stop()
        return page

    def _knows(self, secret: str) -> bool:
        return hmac.compare_digest(secret.encode(), self.secret.encode())

    def _refusal(self) -> web.HTTPForbidden:
        return web.HTTPForbidden(text="Open the whole address that accel-tui serve said, with its secret.\n")


def serve(host: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or a signal that ends; then end all dashboards.

    Args:
        host: The address to listen on.
        port: The port; 0 for any that is free.
        tell: Called with the address to open, once it can be.

    Raises:
        UsageError: The address cannot be listened on.
    """
    for name in _NOT_PASSED_ON:
        os.environ.pop(name, None)
    os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}  # what the page's terminal is
    try:
        asyncio.run(_serve(host, port, tell))
    finally:
        for child in psutil.Process().children():  # one that hangs; the others have ended
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


async def _serve(host: str, port: int, tell: Callable[[str], None]) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    dashboards = Dashboards(host)
    runner = web.AppRunner(await dashboards.make_app(), access_log=None, shutdown_timeout=END_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise UsageError(_problem(error, host, port)) from error
        bound = runner.addresses[0][1]
        tell(f"http://{_reached(host)}:{bound}/?secret={dashboards.secret}")
        await ended.wait()
    finally:
        await runner.cleanup()


def _cookie(request: web.Request) -> str:
    """A name for each port: browsers keep one set of cookies for all servers of a machine."""
    return f"accel-tui-{request.host.rpartition(':')[2]}"


def _reached(host: str) -> str:
    """What to call this machine in an address."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 (the user chose it, and was warned)
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _problem(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use by another program; choose another, or any that is free: --port 0"
    if error.errno == errno.EACCES:
        return f"port {port} is not for every user to listen on; choose one from 1024 on, as in --port 8000"
    # From Python 3.13 on, asyncio leaves out an address that cannot be had, and tells no number if none is left.
    if isinstance(error, socket.gaierror) or error.errno in (errno.EADDRNOTAVAIL, None):
        return f"{host} is no address of this machine; --host is one of its own, as in 127.0.0.1"
    return f"cannot listen on {host} port {port}: {error.strerror or error}"
