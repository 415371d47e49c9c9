"""What tests of engine processes share."""

import subprocess
from collections.abc import Iterator

import psutil
import pytest


@pytest.fixture
def address(silent_port: int) -> str:
    """An address of this machine that nobody listens on."""
    return f"127.0.0.1:{silent_port}"


@pytest.fixture
def engines() -> Iterator[list["subprocess.Popen[str]"]]:
    """Engine processes that do not outlive their test, nor do the processes that they have started."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        children = psutil.Process(process.pid).children() if process.poll() is None else []
        for each in (process, *children):
            each.kill()
        process.wait()
