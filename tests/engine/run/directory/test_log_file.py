"""Printing to a log on a full disk ends nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accel_engine.run.directory.log_file import LogFile

PRINTING = """
import sys, warnings
from accel_engine.run.directory.log_file import never_fail_to_print
never_fail_to_print()
print("grüße", 1, end=" ")
print("\\udcff", file=sys.stderr)
print("end")
"""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")
def test_printing_to_a_full_disk_raises_nothing() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run([sys.executable, "-c", PRINTING], stdout=full, stderr=full, check=False)
    assert result.returncode == 0


def test_what_is_printed_is_in_the_log_line_by_line(tmp_path: Path) -> None:
    with (tmp_path / "log.txt").open("w") as log:
        subprocess.run(
            [sys.executable, "-X", "utf8", "-c", f"{PRINTING}\nimport os; os._exit(0)"],
            stdout=log,
            stderr=log,
            check=True,
        )
    assert (tmp_path / "log.txt").read_text() == "\\udcff\ngrüße 1 end\n"


def test_what_is_missing_is_counted_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.txt"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    log, write = LogFile(descriptor), os.write
    log.write(b"before\n")

    def write_three_bytes(descriptor: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", refuse)
        return write(descriptor, data[:3])

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", write_three_bytes)
    assert log.write(b"lost line\n") == 10
    log.write(b"another\n")
    monkeypatch.setattr(os, "write", write)
    log.write(b"after\n")
    log.write(b"more\n")
    os.close(descriptor)

    missing = "accel-tui: 15 bytes of output are missing here: the log could not be written"
    assert path.read_text() == f"before\nlos\n{missing}\nafter\nmore\n"
