"""The dashboard in a browser: over HTTP and a web socket, and in Chromium."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import pyte
import pytest

from accel_tui.appearance.theme import DARK, LIGHT
from end_to_end.browser import CHROMIUM, Browser
from waiting import eventually

PRIVATE = re.compile(rb"\x1b\[[<>=?][\d;]*[mu]|\x1b\[\?\d+\$p")
"""Questions that pyte does not know."""


class Served:
    """A server that runs."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self.process = process
        self.address = address
        self.base = address.partition("/?")[0]
        self.secret = address.partition("secret=")[2]

    @property
    def dashboards(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()


@contextlib.asynccontextmanager
async def serving(program: Path) -> AsyncIterator[Served]:
    environment = {name: value for name, value in os.environ.items() if name not in ("TEXTUAL", "NO_COLOR")}
    process = await asyncio.create_subprocess_exec(
        str(program), "serve", "--port", "0", stdout=asyncio.subprocess.PIPE, env=environment
    )
    try:
        assert process.stdout
        said = (await process.stdout.readline()).decode()
        assert said.startswith("Open http://127.0.0.1:")
        yield Served(process, said.split()[1])
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 120) == 0


class Page:
    """A terminal of 100 by 30 cells at the other end of the web socket, which answers no question."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.screen = pyte.Screen(100, 30)
        self._stream = pyte.ByteStream(self.screen)

    async def until(self, word: str) -> None:
        async with asyncio.timeout(120):
            while not any(word in line for line in self.screen.display):
                data = await self.socket.receive_bytes()
                self._stream.feed(PRIVATE.sub(b"", data))


@contextlib.asynccontextmanager
async def opened(served: Served) -> AsyncIterator[Page]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(served.address) as reply:
            assert reply.status == 200
            page = str(reply.url)
        async with session.ws_connect(f"{page}ws?width=100&height=30", origin=served.base) as socket:
            yield Page(socket)


async def test_only_who_knows_the_secret_gets_a_dashboard_which_ends_with_its_page_or_the_server(program: Path) -> None:
    async with serving(program) as served:
        await refused_to_strangers(served)
        assert not served.dashboards

        async with opened(served) as page:
            await page.until("Start")
        await eventually(lambda: not served.dashboards)
        async with opened(served) as page:
            await page.until("Start")
            await page.socket.send_json(["stdin", "q"])
            async with asyncio.timeout(120):
                while not page.socket.closed:
                    await page.socket.receive()

        async with opened(served) as page:
            await page.until("Start")
            await page.socket.send_json(["stdin", "?"])
            await page.until("esc closes")
            dashboards = served.dashboards
            assert dashboards
            served.process.send_signal(signal.SIGINT)
            while not page.socket.closed:
                await page.socket.receive()
            await served.process.wait()
            await eventually(lambda: not any(each.is_running() for each in dashboards))


async def refused_to_strangers(served: Served) -> None:
    """Neither without the secret nor from a page of another site does anybody get in."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        for path in ("/", "/?secret=guessed", "/static/js/textual.js"):
            async with session.get(served.base + path) as reply:
                assert reply.status == 403
        async with session.get(served.address) as reply:
            page = str(reply.url)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{page}ws", origin="http://another.example")
        assert refused.value.status == 403


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
async def test_in_chromium_the_dashboard_is_painted_takes_keys_and_needs_no_network(
    program: Path, tmp_path: Path
) -> None:
    def dots(colour: str | None) -> tuple[int, ...]:
        assert colour
        return tuple(bytes.fromhex(colour.removeprefix("#")))

    async with serving(program) as served, Browser(tmp_path / "profile") as browser:
        await browser.do("Page.navigate", url=served.address)
        await browser.until(lambda: "Start" in browser.frames("Received"))
        assert await browser.evaluate("document.title") == "accel-tui"
        assert served.secret not in str(await browser.evaluate("location.href"))
        await browser.until(
            lambda: re.search(r"\[1;\dR", browser.frames("Sent"))
        )  # its terminal tells what has arrived
        for theme in (DARK, LIGHT):
            async with asyncio.timeout(120):
                while await browser.colour(300, 8) != dots(theme.surface):
                    await asyncio.sleep(0.02)
            await browser.press("t")
        assert all(url.startswith(("http://127.0.0.1:", "about:", "data:")) for url in browser.asked)
