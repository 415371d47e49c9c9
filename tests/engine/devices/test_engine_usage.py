"""What an engine and its children take, with real processes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from accel_engine.devices.engine_usage import CHILDREN_INTERVAL, EngineUsage

BUSY = "import sys; print(flush=True)\nwhile True: pass"

PARENT = f"""
import subprocess, sys
for line in sys.stdin:
    if line == "begin\\n":
        child = subprocess.Popen([sys.executable, "-c", {BUSY!r}])
    else:
        child.kill()
        child.wait()
        print(flush=True)
"""


@pytest.fixture
def ask() -> Iterator[Callable[[str], int]]:
    """Have a process that does nothing else ``begin`` or ``end`` a child that works; gives the process' id."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        told, heard = process.stdin, process.stdout

        def ask(what: str) -> int:
            told.write(f"{what}\n")
            told.flush()
            assert heard.readline() == "\n"
            return process.pid

        yield ask
        process.communicate("end\n")


class Clock:
    """A time that passes only when a test lets it."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_this_process_is_read(wait_until: Callable[..., None]) -> None:
    use = EngineUsage(os.getpid())
    first = use.read()
    assert "second reading" in first["engine_cpu"].reason
    assert first["engine_memory"].value is not None
    assert first["engine_memory"].value > 2**20
    wait_until(lambda: use.read()["engine_cpu"].value, "this test's own use")


def test_children_count(ask: Callable[[str], int], wait_until: Callable[..., None]) -> None:
    use = EngineUsage(ask("begin"))
    use.read()
    wait_until(lambda: (use.read()["engine_cpu"].value or 0) > 5, "the child's work")


def test_a_new_child_is_seen_in_time_and_its_past_is_not_counted(ask: Callable[[str], int]) -> None:
    clock = Clock()
    ask("begin")
    use = EngineUsage(ask("end"), clock)
    use.read()
    ask("begin")
    clock.now += 1
    before = use.read()["engine_memory"].value
    clock.now += CHILDREN_INTERVAL
    after = use.read()["engine_memory"].value
    assert before is not None
    assert after is not None
    assert after - before > 2**20
    ask("end")
    clock.now += 1
    assert use.read()["engine_memory"].value is not None  # although the child has ended


def test_an_engine_that_has_ended_is_said() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    readings = EngineUsage(process.pid).read()
    assert {reading.reason for reading in readings.values()} == {"the engine has exited"}
