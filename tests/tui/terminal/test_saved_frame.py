"""The first frame is kept for where and when it would be the same again, and shown nowhere else."""

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from accel_tui.terminal import saved_frame
from accel_tui.terminal.saved_frame import ENTER_ALTERNATE_SCREEN, SavedFrame

FRAME = "\x1b[1;1Ha frame\n of two lines ▶"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal that is the standard streams; gives the end where a person would sit."""
    master, slave = pty.openpty()
    resize(slave, 80, 24)
    with os.fdopen(slave, "r+b", buffering=0) as both, open(slave, "w", encoding="utf-8", closefd=False) as out:
        monkeypatch.setattr(saved_frame, "sys", SimpleNamespace(stdin=both, stdout=out))
        yield master
    os.close(master)


def resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def kept() -> SavedFrame:
    SavedFrame().keep(FRAME)
    return SavedFrame()


def test_what_was_kept_is_shown_and_typing_is_not(terminal: int) -> None:
    frame = kept()
    frame.show()
    assert frame.is_shown
    shown, end = b"", FRAME.replace("\n", "\r\n").encode()
    while not shown.endswith(end):  # one read may end within it
        shown += os.read(terminal, 4096)
    assert shown.startswith(ENTER_ALTERNATE_SCREEN.encode())
    assert not termios.tcgetattr(terminal)[3] & termios.ECHO


def test_nothing_is_shown_before_a_frame_was_kept(terminal: int) -> None:
    before = termios.tcgetattr(terminal)
    frame = SavedFrame()
    frame.show()
    assert not frame.is_shown
    assert termios.tcgetattr(terminal) == before


@pytest.mark.parametrize("change", ["size", "variable", "settings", "damage"])
def test_a_frame_of_other_circumstances_is_not_shown(
    terminal: int, monkeypatch: pytest.MonkeyPatch, home: Path, change: str
) -> None:
    kept()
    match change:
        case "size":
            resize(terminal, 100, 30)
        case "variable":
            monkeypatch.setenv("NO_COLOR", "1")
        case "settings":
            monkeypatch.setenv("ACCEL_TUI_SETTINGS", str(home / "settings.toml"))
            kept()
            (home / "settings.toml").touch()
        case "damage":
            (home / "first-frame").write_bytes(b"\xff\xfe")
    frame = SavedFrame()
    frame.show()
    assert not frame.is_shown


def test_another_frame_takes_its_place_and_the_same_is_not_written_again(terminal: int, home: Path) -> None:
    frame = kept()
    frame.show()
    written = (home / "first-frame").stat().st_ino
    frame.keep(FRAME)
    assert (home / "first-frame").stat().st_ino == written
    frame.keep("another")
    assert (home / "first-frame").read_text(encoding="utf-8").endswith("\nanother")


def test_a_place_that_cannot_be_written_is_no_matter(terminal: int, home: Path) -> None:
    home.write_text("a file, not a folder")
    kept().show()
