"""Captures the dashboard in a browser with Chromium."""

import asyncio
import base64
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from end_to_end.browser import CHROMIUM, Browser

ENTER = {"key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13}


async def capture_page(path: Path, program: Path) -> None:
    """Serve the dashboard, open its newest run in the browser, and write a PNG of the page."""
    if CHROMIUM is None:
        print(f"{path.name}: skipped, Chromium is not installed")
        return
    server = await asyncio.create_subprocess_exec(program, "serve", "--port", "0", stdout=asyncio.subprocess.PIPE)
    try:
        assert server.stdout
        address = (await server.stdout.readline()).decode().split()[1]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            async with Browser(Path(profile)) as browser:
                await browser.do("Page.navigate", url=address)
                await browser.until(lambda: "Start" in browser.frames("Received"))
                await browser.press("r")
                await browser.until(lambda: "runs by data" in browser.frames("Received"))
                before = len(browser.frames("Received"))
                await browser.do("Input.dispatchKeyEvent", type="keyDown", **ENTER)
                await browser.until(lambda: "validation" in browser.frames("Received")[before:])
                await asyncio.sleep(3.0)  # run and page are updated five times a second
                path.write_bytes(base64.b64decode((await browser.do("Page.captureScreenshot"))["data"]))
                print(path.name)
    finally:
        server.terminate()
        await server.wait()
