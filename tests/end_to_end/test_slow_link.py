"""A terminal that takes nothing for a while: keys work all the same, and what is old by then is never sent."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from end_to_end.terminal import Terminal
from tui.fake_engine import FakeEngine

BACKLOG = 128 * 1024
"""Bytes: the system keeps up to 64 KiB of a terminal's output; beside them, the queued frames and a whole screen."""


class SlowTerminal(Terminal):
    """Reads only while it is let; says where its cursor is when it is asked."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self.reading = threading.Event()
        self.reading.set()
        super().__init__(*arguments, **more)

    def _take(self) -> bytes:
        self.reading.wait()
        data = super()._take()
        for column in re.findall(rb"\x1b\[1;(\d)H\x1b\[6n", data):
            os.write(self._master, b"\x1b[1;%sR" % column)
        return data

    def close(self) -> None:
        self.reading.set()
        super().close()


@pytest.fixture
def stand_in() -> Iterator[int]:
    """A process that a run can be said to be trained by."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process.pid
        process.kill()


def test_keys_stay_live_and_no_backlog_grows_while_the_terminal_takes_nothing(
    program: Path, stand_in: int, wait_until: Callable[..., None]
) -> None:
    engine = FakeEngine(pid=stand_in).begin().build().train(20)
    with SlowTerminal([program, "watch", engine.directory], columns=120, rows=40) as terminal:
        terminal.wait_for("step 20/400")
        terminal.reading.clear()
        before = len(terminal.raw)
        for _ in range(60):
            engine.train(5)
            terminal.send("i")  # the details go and come: the charts are drawn anew each time
        terminal.send("p")
        wait_until(lambda: [command.name for command in engine.writer.commands()] == ["pause"], "the pause to be asked")
        terminal.reading.set()
        terminal.wait_for("step 320/400")
        terminal.wait_for("requested: pause")
        assert len(terminal.raw) - before < BACKLOG
        terminal.send("d")
        terminal.wait_for("runs")
    engine.close()
