"""The bounds of examples themselves, with small ones."""

import time
from contextlib import suppress

import pytest

from fuzzing import bounds
from fuzzing.bounds import bounded


def test_an_example_that_computes_for_ever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own handlers of exceptions do not keep it alive."""
    monkeypatch.setattr(bounds, "CPU_SECONDS", 0.05)

    @bounded()
    def example() -> None:
        while True:
            with suppress(Exception):
                sum(range(1000))

    with pytest.raises(AssertionError, match=r"hangs: it took more than 0.05 s of the processor"):
        example()


def test_an_example_that_waits_for_ever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SECONDS", 0.05)
    with pytest.raises(AssertionError, match=r"hangs: it took more than 0.05 s"), bounded():
        time.sleep(1e6)


def test_an_example_that_takes_too_much_memory_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has its memory again afterwards."""
    monkeypatch.setattr(bounds, "MEMORY", 1 << 26)
    with pytest.raises(MemoryError), bounded():
        bytearray(2 * bounds.MEMORY)
    assert len(bytearray(2 * bounds.MEMORY)) == 2 * bounds.MEMORY
