"""Fixtures of the tests of engine processes."""

import subprocess
from collections.abc import Iterator

import psutil
import pytest


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
