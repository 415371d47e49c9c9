"""The way to a terminal that is gone."""

import os

import pytest
from textual.drivers._writer_thread import MAX_QUEUED_WRITES, WriterThread

from accel_tui.terminal.textual_private import BestEffortWriter


def test_nobody_waits_for_a_terminal_that_is_gone() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    gone = os.fdopen(writer, "w")
    thread = WriterThread(BestEffortWriter(gone))  # type: ignore[arg-type]
    thread.start()
    for _ in range(3 * MAX_QUEUED_WRITES):
        thread.write("x")
    thread.stop()
    assert not thread.is_alive()
    with pytest.raises(BrokenPipeError):
        gone.close()
