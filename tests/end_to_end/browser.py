"""A real browser without a window, driven through the protocol of its developer tools."""

import asyncio
import base64
import itertools
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1000,600",
    "--remote-debugging-port=0",
)

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""The browser, where there is one."""


class Browser:
    """A page in Chromium.

    Args:
        profile: A new directory.
    """

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        command = (str(CHROMIUM), *FLAGS, f"--user-data-dir={self._profile}", "about:blank")
        devnull = asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(*command, stdout=devnull, stderr=devnull)
        told = self._profile / "DevToolsActivePort"
        while not (told.exists() and len(told.read_text().split()) > 1):
            await asyncio.sleep(0.01)
        port = told.read_text().split()[0]
        self._session = aiohttp.ClientSession()
        pages: list[dict[str, Any]] = []
        while not pages:  # which may be made after the port
            async with self._session.get(f"http://127.0.0.1:{port}/json/list") as reply:
                pages = [each for each in await reply.json() if each["type"] == "page"]
        self._socket = await self._session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)
        await self.do("Network.enable")
        await self.do("Page.enable")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._socket.close()
        await self._session.close()
        self._process.terminate()
        await self._process.wait()

    async def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Have it do something; what happens meanwhile is kept."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while (said := await self._socket.receive_json()).get("id") != number:
            self.events.append(said)
        assert "error" not in said, said
        return said["result"]

    async def evaluate(self, expression: str) -> Any:
        """What a line of JavaScript gives."""
        return (await self.do("Runtime.evaluate", expression=expression))["result"].get("value")

    async def press(self, key: str) -> None:
        """Press and release a key that is a character."""
        await self.do("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        await self.do("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def colour(self, x: int, y: int) -> tuple[int, ...]:
        """The red, green and blue that a dot of the page is painted with."""
        clip = {"x": x, "y": y, "width": 1, "height": 1, "scale": 1}
        png = base64.b64decode((await self.do("Page.captureScreenshot", clip=clip))["data"])
        packed, place = b"", 8
        while place < len(png):
            (size,) = struct.unpack(">I", png[place : place + 4])
            packed += png[place + 8 : place + 8 + size] if png[place + 4 : place + 8] == b"IDAT" else b""
            place += 12 + size
        return tuple(zlib.decompress(packed)[1:4])  # one row: a byte for its filter, which changes no first dot

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait for a condition, which may be told by what the browser says."""
        async with asyncio.timeout(120):
            while not condition():
                await self.evaluate("1")  # takes what happened
                await asyncio.sleep(0.02)

    def frames(self, direction: str) -> str:
        """What went over the page's web socket: ``Received``, or ``Sent``."""
        told = [
            each["params"]["response"] for each in self.events if each["method"] == f"Network.webSocketFrame{direction}"
        ]
        return "".join(
            base64.b64decode(each["payloadData"]).decode(errors="replace")
            if each["opcode"] == 2
            else each["payloadData"]
            for each in told
        )

    @property
    def asked(self) -> list[str]:
        """The addresses that it asked for."""
        return [
            each["params"]["request"]["url"] for each in self.events if each["method"] == "Network.requestWillBeSent"
        ]
