"""What the doctor prints, of findings that are made up, and once of this very machine."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from io import TextIOWrapper

import pytest

from accel_engine.doctor import Check, failed, passed, skipped, warned
from accel_tui.cli import terminal_checks

LONG = "so many words that they do not fit in a line of a terminal of eighty columns and go on below it"

FINDINGS = (
    Check("python", lambda: passed("CPython 3.12")),
    Check("tensorflow.packages", lambda: warned("two", LONG, "install accel-tui[cpu] afresh")),
    Check("tensorflow.import", lambda: passed(LONG)),
    Check("tpu.lock", lambda: failed("locked", "somebody holds it", "wait")),
)


@pytest.fixture
def found(monkeypatch):
    """Find what is made up, instead of this machine."""

    def put(*checks):
        monkeypatch.setattr("accel_tui.cli.doctor.checks_of", lambda *, deep: checks)
        monkeypatch.setattr(terminal_checks, "checks", lambda: ())

    put(*FINDINGS)
    return put


def test_findings_are_aligned_and_explained(run_command, found):
    result = run_command("doctor")
    assert (result.status, result.err) == (1, "")
    assert result.lines[0] == "\N{CHECK MARK} python               CPython 3.12"
    assert result.lines[1] == "! tensorflow.packages  two"
    assert result.lines[2].startswith("    cause: so many words")
    assert result.lines[3].startswith("         ")
    assert result.lines[4] == "    fix:   install accel-tui[cpu] afresh"
    assert "\N{BALLOT X} tpu.lock             locked" in result.lines
    assert result.lines[-1] == "1 failed, 1 warning, 2 passed"
    assert all(len(line) <= 80 for line in result.lines)
    assert "\x1b" not in result.out


def test_without_a_failure_the_status_is_0(run_command, found):
    found(*FINDINGS[:3])
    assert run_command("doctor").status == 0
    assert run_command("doctor --json").status == 0


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("tensorflow", ["tensorflow.packages", "tensorflow.import"]),
        ("tpu.lock python", ["python", "tpu.lock"]),
        ("tpu tpu.lock", ["tpu.lock"]),
        ("", [check.name for check in FINDINGS]),
    ],
)
def test_only_what_is_named_is_looked_at(run_command, found, words, names):
    lines = [json.loads(line) for line in run_command(f"doctor {words} --json").lines]
    assert [line["check"] for line in lines] == names


def test_findings_as_json(run_command, found):
    result = run_command("doctor tpu --json")
    (line,) = map(json.loads, result.lines)
    assert line.pop("seconds") >= 0
    assert line == {
        "check": "tpu.lock",
        "verdict": "fail",
        "found": "locked",
        "why": "somebody holds it",
        "advice": "wait",
    }
    assert result.status == 1


def test_an_unknown_name_is_told_with_the_known(run_command, found):
    result = run_command("doctor tensorflw")
    assert result.status == 2
    assert "no check 'tensorflw'; did you mean tensorflow" in result.err
    for check in FINDINGS:
        assert check.name in result.err
    assert "\nChecks: python, tensorflow, tpu, tensorflow.packages" in run_command("doctor zzz").err


def on_terminal(monkeypatch, encoding="utf-8"):
    """Let standard output be a terminal; give the function that reads what was written to it."""
    ours, theirs = pty.openpty()
    stream = TextIOWrapper(os.fdopen(theirs, "wb", buffering=0), encoding=encoding, write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)

    def read():
        stream.close()
        written = b""
        with suppress(OSError):  # the end of a terminal that was closed
            while part := os.read(ours, 100_000):
                written += part
        os.close(ours)
        return written.decode(encoding).replace("\r\n", "\n")

    return read


def test_on_a_terminal_marks_have_colours_and_what_is_waited_for_is_named(monkeypatch, run_command, found):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    read = on_terminal(monkeypatch)
    run_command("doctor python tpu")
    text = read()
    assert "  python ..." in text
    assert "\x1b[2K\x1b[32m\N{CHECK MARK}\x1b[0m python    CPython 3.12\n" in text
    assert "  tpu.lock ..." in text
    assert "\x1b[2K\x1b[31m\N{BALLOT X}\x1b[0m tpu.lock  locked\n" in text


def test_no_color_is_respected(monkeypatch, run_command, found):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    read = on_terminal(monkeypatch)
    run_command("doctor python")
    assert "\x1b[2K\N{CHECK MARK} python  CPython 3.12\n" in read()


def test_without_unicode_marks_and_words_are_ascii(monkeypatch, run_command, found):
    found(Check("python", lambda: passed("3.12 \N{EM DASH} fine")), Check("tpu.lock", FINDINGS[3].run))
    monkeypatch.setenv("TERM", "dumb")
    read = on_terminal(monkeypatch, "ascii")
    run_command("doctor")
    text = read()
    assert text.startswith("+ python    3.12 ? fine\nx tpu.lock  locked\n")
    assert "\x1b" not in text


def test_this_machine_is_looked_at_by_the_true_command():
    command = [sys.executable, "-m", "accel_tui", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    findings = {line["check"]: line for line in map(json.loads, done.stdout.splitlines())}
    names = list(findings)
    assert (names[0], names[-1]) == ("python", "terminal.unicode")
    assert findings["tensorflow.import"]["verdict"] == "pass"
    assert findings["runs.database"]["verdict"] != "fail"
    assert done.returncode == int(any(finding["verdict"] == "fail" for finding in findings.values()))


def test_passed_checks_of_a_subject_that_say_the_same_are_counted(run_command, found):
    found(
        *(Check(f"nvidia.{name}", lambda: passed("no GPU")) for name in ("driver", "files", "links")),
        Check("tpu.lock", lambda: passed("no GPU")),
        *(Check(f"tpu.{name}", lambda: skipped("not needed")) for name in ("chips", "metrics")),
    )
    assert run_command("doctor").out.splitlines() == [
        "\N{CHECK MARK} nvidia.driver  no GPU",
        "                 2 more checks: the same",
        "\N{CHECK MARK} tpu.lock       no GPU",
        "\N{EN DASH} tpu.chips      not needed",
        "                 1 more check: the same",
        "",
        "4 passed, 2 not needed or not checked",
    ]


def test_a_path_that_is_wider_than_a_line_stays_whole(run_command, found):
    path = f"/home/user/{'a' * 80}/tensorflow"
    found(Check("tensorflow.import", lambda: failed("incomplete", f"files are missing in {path}", "reinstall it")))
    assert path in run_command("doctor").out


@pytest.mark.parametrize("words", ["--deep", "tensorflow.computing"])
def test_devices_compute_only_where_it_is_asked_for(run_command, monkeypatch, words):
    asked = []
    monkeypatch.setattr(terminal_checks, "checks", lambda: ())
    check = Check("tensorflow.computing", lambda: passed("done"))
    monkeypatch.setattr("accel_tui.cli.doctor.checks_of", lambda *, deep: asked.append(deep) or (check,))
    run_command("doctor")
    run_command(f"doctor {words}")
    assert asked == [False, True]
