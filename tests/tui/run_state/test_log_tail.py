"""The end of a growing text file."""

from pathlib import Path

import pytest

from accel_tui.run_state import log_tail
from accel_tui.run_state.log_tail import LogLine, Logs, LogTail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.txt"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def texts(lines: list[LogLine]) -> list[str]:
    return [line.text for line in lines]


def test_lines_come_once_they_are_whole(log: Path) -> None:
    reader = LogTail(log)
    assert reader.read() == []
    append(log, b"one\ntw")
    assert texts(reader.read()) == ["one"]
    assert reader.read() == []
    append(log, b"o\nthree\n")
    assert texts(reader.read()) == ["two", "three"]


def test_a_long_file_is_read_from_near_its_end(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "MAX_BYTES", 20)
    append(log, b"".join(b"line %d\n" % number for number in range(100)))
    assert texts(LogTail(log).read()) == ["line 98", "line 99"]


def test_what_is_added_at_once_comes_in_pieces_and_nothing_is_lost(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "MAX_BYTES", 20)
    reader = LogTail(log)
    append(log, b"first\n")
    lines = texts(reader.read())
    append(log, b"".join(b"line %d\n" % number for number in range(50)))
    while more := reader.read():
        lines += texts(more)
    assert lines == ["first", *(f"line {number}" for number in range(50))]


def test_a_file_that_was_cut_is_read_anew(log: Path) -> None:
    reader = LogTail(log)
    append(log, b"one\ntwo\n")
    reader.read()
    log.write_bytes(b"new\n")
    assert texts(reader.read()) == ["new"]


def test_a_progress_bar_leaves_its_last_form(log: Path) -> None:
    reader = LogTail(log)
    append(log, b"10%\r20%")
    assert reader.read() == []
    append(log, b"\r100%\r")
    assert reader.read() == []
    append(log, b"\nwindows\r\n")
    assert texts(reader.read()) == ["100%", "windows"]


def test_nothing_that_a_terminal_would_obey_comes_through(log: Path) -> None:
    append(log, b"\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07plain\xff\n\tindented\n")
    assert texts(LogTail(log).read()) == ["red plain\N{REPLACEMENT CHARACTER}", "        indented"]


def test_logs_of_other_workers_come_with_their_names_whenever_they_are_there(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    assert logs.read() == []
    append(tmp_path / "log.txt", b"mine\n")
    for number, text in ((10, b"ten\n"), (2, b"two\nhal")):
        (tmp_path / "workers" / str(number)).mkdir(parents=True)
        append(tmp_path / "workers" / str(number) / "log.txt", text)
    assert texts(logs.read()) == ["mine", "worker 2 │ two", "worker 10 │ ten"]
    append(tmp_path / "workers" / "2" / "log.txt", b"f\n")
    assert texts(logs.read()) == ["worker 2 │ half"]


def test_of_a_worker_s_long_log_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "MAX_WORKER_BYTES", 20)
    (tmp_path / "workers" / "1").mkdir(parents=True)
    for log in (tmp_path / "log.txt", tmp_path / "workers" / "1" / "log.txt"):
        append(log, b"".join(b"line %d\n" % number for number in range(100)))
    lines = texts(Logs(tmp_path).read())
    assert (len(lines), lines[-2:]) == (102, ["worker 1 │ line 98", "worker 1 │ line 99"])


def test_every_line_says_where_it_begins_also_when_it_came_in_parts(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "MAX_BYTES", 20)
    reader = LogTail(log)
    assert reader.read() == []
    found = []
    for data in (b"one\ntw", b"o\n0%\r99%", b"\r100%\nfour\n", b"five\n" * 9):
        append(log, data)
        while more := reader.read():
            found += more
        reader.read()
    whole = log.read_bytes()
    for line in found:
        assert line.at is not None
        assert whole[line.at - 1 : line.at] in (b"", b"\n")
    assert [line.at for line in found[:4]] == [0, 4, 8, 20]


def test_older_lines_are_read_backwards_until_the_beginning(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "MAX_BYTES", 40)
    append(log, b"".join(b"line %d\n" % number for number in range(100)))
    logs = Logs(log.parent)
    lines = logs.read()
    assert len(lines) < 10
    while lines[0].at and (more := logs.read_before(lines[0].at)):
        lines = more + lines
    assert texts(lines) == [f"line {number}" for number in range(100)]
    assert logs.read_before(0) == []
