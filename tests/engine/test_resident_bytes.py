"""The memory of a process and of those that it has started."""

from types import SimpleNamespace

import psutil
import pytest

from accel_engine.memory import resident_bytes


class StandIn:
    """Stands in for a process with two others, of which one has exited since they were listed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def children(self, *, recursive: bool) -> list["StandIn"]:
        assert recursive
        return [StandIn(2), StandIn(3)]

    def memory_info(self) -> SimpleNamespace:
        if self.pid == 2:
            raise psutil.NoSuchProcess(self.pid)
        return SimpleNamespace(rss=100 * self.pid)


def test_a_process_that_exits_meanwhile_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "Process", StandIn)
    assert resident_bytes(1) == 100 + 300
    assert resident_bytes(2) == 300
