"""Fixtures of the tests of engine processes."""

import subprocess
from collections.abc import Iterator

import psutil
import pytest


@pytest.fixture
def address(silent_port: int) -> str:
    """A local address that refuses connections."""
    return f"127.0.0.1:{silent_port}"


@pytest.fixture
def engines() -> Iterator[list["subprocess.Popen[str]"]]:
    """A list of engine processes, killed with their children at the end of the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        children = psutil.Process(process.pid).children() if process.poll() is None else []
        for each in (process, *children):
            each.kill()
        process.wait()
