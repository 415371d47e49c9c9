"""Printing to a log on a full disk ends nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accel_engine.run.directory.log_file import LogFile, follow_run
from accel_engine.run.directory.run_paths import LOG

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


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="only Linux opens a file again by its descriptor")
@pytest.mark.parametrize("lost", ["deleted", "moved", "replaced"])
def test_a_log_goes_on_in_another_directory(tmp_path: Path, lost: str) -> None:
    """Unless its own directory has another log now: then that is the log of another run."""
    former, other = tmp_path / "former", tmp_path / "other"
    for directory in (former, other):
        directory.mkdir()
    log = os.open(former / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, b"before\n")
    if lost == "deleted":
        (former / LOG).unlink()
    elif lost == "replaced":
        (former / LOG).rename(tmp_path / LOG)
        (former / LOG).touch()

    follow_run(former, other, log)

    os.write(log, b"after\n")
    assert not os.get_inheritable(log)
    os.close(log)
    if lost == "replaced":
        assert (tmp_path / LOG).read_text() == "before\nafter\n"
        assert not (other / LOG).exists()
    else:
        assert (other / LOG).read_text() == "before\nafter\n"
        assert (other / LOG).stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="only Linux opens a file again by its descriptor")
@pytest.mark.parametrize("errors", ["", "in another file"])
def test_what_a_process_prints_follows_its_run(tmp_path: Path, errors: str) -> None:
    former, other = tmp_path / "former", tmp_path / "other"
    former.mkdir()
    other.mkdir()
    program = f"""
import os
from pathlib import Path
from accel_engine.run.directory.log_file import follow_run
follow_run(Path({str(former)!r}), Path({str(other)!r}))
os.write(1, b"printed ")
os.write(2, b"an error")
"""
    with (former / LOG).open("ab") as log, (tmp_path / "errors").open("ab") as separate:
        subprocess.run([sys.executable, "-c", program], stdout=log, stderr=separate if errors else log, check=True)

    assert (other / LOG).read_text() == ("printed " if errors else "printed an error")
    assert (tmp_path / "errors").read_text() == ("an error" if errors else "")
