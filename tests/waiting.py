"""Waiting for what comes by itself; a test that waits in vain fails with what it waited for."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

TIMEOUT = 300.0
"""Seconds after which a test fails."""

PAUSE = 0.01
"""Seconds between two looks at a condition, at least."""

PAUSES = 8.0
"""Pauses by the time that a look takes: to read a run a hundred times a second would keep a processor busy."""


def wait_until(condition: Callable[[], object], what: str = "the condition", timeout: float = TIMEOUT) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout
    began = time.thread_time()
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"timed out after {timeout:g} s waiting for {what}")
        time.sleep(max(PAUSE, PAUSES * (time.thread_time() - began)))
        began = time.thread_time()


async def eventually(
    condition: Callable[[], object],
    what: Callable[[], str] = lambda: "the condition",
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Wait for a condition, and let others run meanwhile with ``pause``."""
    deadline = time.monotonic() + TIMEOUT
    began = time.thread_time()
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"timed out after {TIMEOUT:g} s waiting for {what()}")
        await pause(max(PAUSE, PAUSES * (time.thread_time() - began)))
        began = time.thread_time()
