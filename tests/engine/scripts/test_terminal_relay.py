"""The log of a script's output."""

import os
from pathlib import Path

import pytest

from accel_engine.scripts.terminal_relay import OutputLog


def test_lines_of_a_terminal_end_as_in_a_file_also_in_pieces(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "log.txt")
    for piece in (b"one\r\ntw", b"o\r", b"\n10%\r", b"20%\r\n", b"end\r\n"):
        log.write(piece, terminal=True)
    log.write(b"raw\r\n")
    log.close()

    assert (tmp_path / "log.txt").read_bytes() == b"one\ntwo\n10%\r20%\nend\nraw\r\n"


def test_what_a_full_disk_does_not_take_is_counted_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, full, write = OutputLog(tmp_path / "log.txt"), [False], os.write

    def writing(descriptor: int, data: bytes) -> int:
        if full[0]:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", writing)
    log.write(b"before\n")
    full[0] = True
    log.write(b"12345\n")
    log.note("waiting")
    full[0] = False
    log.write(b"after\n")
    log.close()

    lost = len(b"12345\n") + len(b"accel-tui: waiting\n")
    missing = f"\naccel-tui: {lost} bytes of output are missing here: the log could not be written\n"
    assert (tmp_path / "log.txt").read_text() == f"before\n{missing}after\n"


def test_the_log_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    OutputLog(tmp_path / "log.txt").close()

    assert (tmp_path / "log.txt").stat().st_mode & 0o777 == 0o600
