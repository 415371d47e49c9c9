"""Reads the messages that a page's script sends to its dashboard, which may be anything."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService

from accel_tui.cli.web_access import Rate

MAX_BYTES = 1 << 20
"""The largest message, such as a pasted text; a larger one closes the page."""

MESSAGES, MESSAGES_PER_SECOND = 1_000, 200.0
"""How many messages are read at once, and then per second; a page that sends more waits."""

MAX_SIZE = (1_000, 500)
"""The largest terminal in columns and rows; larger ones are shown in a part of the page."""

_MAX_PING = 32
"""Characters of a ping's number."""


async def forward_messages(page: web.WebSocketResponse, dashboard: AppService) -> None:
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
            await dashboard.set_terminal_size(*fitting_size(width, height))
        case ["ping", str(number)] if len(number) <= _MAX_PING:
            await page.send_json(["pong", number])
        case ["blur"]:
            await dashboard.blur()
        case ["focus"]:
            await dashboard.focus()
        case _:
            return False
    return True


def fitting_size(width: int, height: int) -> tuple[int, int]:
    """The columns and rows nearest to a size that a terminal can have."""
    return max(1, min(width, MAX_SIZE[0])), max(1, min(height, MAX_SIZE[1]))
