import os

import pytest

from accel_engine.doctor import CheckResult
from accel_tui.cli.terminal_checks import Terminal, checks

GOOD = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def finding_of(name, environment=None, interactive=True, size=(120, 40), encoding="utf-8"):
    terminal = Terminal(GOOD if environment is None else environment, interactive, size, encoding)
    (check,) = (check for check in checks(terminal) if check.name == f"terminal.{name}")
    return check.run()


@pytest.mark.parametrize("name", ["type", "size", "colours", "unicode"])
def test_a_good_terminal_passes(name):
    finding = finding_of(name)
    assert finding.verdict is CheckResult.PASS
    assert not finding.cause + finding.fix


@pytest.mark.parametrize("name", ["size", "colours", "unicode"])
def test_without_a_terminal_only_that_is_told(name):
    finding = finding_of(name, interactive=False, size=(80, 24))
    assert finding.verdict is (CheckResult.PASS if name == "unicode" else CheckResult.SKIP)
    finding = finding_of("type", interactive=False)
    assert finding.verdict is CheckResult.WARN
    assert "accel-tui train" in finding.fix


@pytest.mark.parametrize(
    ("environment", "verdict", "words"),
    [
        ({"TERM": "xterm-256color", "SSH_TTY": "/dev/pts/0"}, CheckResult.PASS, "xterm-256color, over SSH"),
        (
            {"TERM": "tmux-256color", "TMUX": "/tmp/tmux-0/default,1,0", "SSH_CONNECTION": "a b c d"},
            CheckResult.PASS,
            "tmux-256color, tmux over SSH",
        ),
        ({"TERM": "screen", "STY": "12.pts-0"}, CheckResult.PASS, "screen, screen"),
        ({"TERM": "xterm-256color", "TMUX": "/tmp/tmux-0/default,1,0"}, CheckResult.WARN, "in tmux"),
        ({"TERM": "dumb"}, CheckResult.WARN, "TERM=dumb"),
        ({}, CheckResult.WARN, "set TERM=xterm-256color"),
    ],
)
def test_types(environment, verdict, words):
    finding = finding_of("type", environment)
    assert finding.verdict is verdict
    assert words in f"{finding.summary} {finding.cause} {finding.fix}"


@pytest.mark.parametrize(
    ("size", "verdict", "words"),
    [
        ((80, 24), CheckResult.PASS, "80x24"),
        ((79, 24), CheckResult.WARN, "80x24"),
        ((80, 23), CheckResult.WARN, "all panels are visible"),
        ((59, 24), CheckResult.WARN, "requires at least 60x16"),
        ((80, 15), CheckResult.WARN, "requires at least 60x16"),
    ],
)
def test_sizes(size, verdict, words):
    finding = finding_of("size", size=size)
    assert finding.verdict is verdict
    assert words in f"{finding.summary} {finding.cause}"


@pytest.mark.parametrize(
    ("environment", "verdict", "found"),
    [
        ({"TERM": "xterm", "COLORTERM": "24bit"}, CheckResult.PASS, "true colour"),
        ({"TERM": "screen-256color"}, CheckResult.PASS, "256 colours (set COLORTERM=truecolor for true colour)"),
        ({"TERM": "xterm"}, CheckResult.WARN, "16 colours"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, CheckResult.PASS, "none (NO_COLOR is set)"),
    ],
)
def test_colours(environment, verdict, found):
    finding = finding_of("colours", environment)
    assert (finding.verdict, finding.summary) == (verdict, found)


@pytest.mark.parametrize(
    ("environment", "encoding", "verdict", "words"),
    [
        (GOOD, "UTF-8", CheckResult.PASS, "UTF-8"),
        (GOOD, "iso8859-1", CheckResult.WARN, "export LC_ALL=C.UTF-8"),
        (GOOD, "ascii", CheckResult.WARN, "encoding has no Unicode"),
        ({"TERM": "linux"}, "utf-8", CheckResult.WARN, "no braille"),
    ],
)
def test_unicode(environment, encoding, verdict, words):
    finding = finding_of("unicode", environment, encoding=encoding)
    assert finding.verdict is verdict
    assert words in f"{finding.summary} {finding.cause} {finding.fix}"


@pytest.mark.parametrize(("told", "taken"), [((132, 43), (132, 43)), ((0, 0), (80, 24))])
def test_this_terminal_is_found_though_output_is_kept(monkeypatch, told, taken):
    def size(descriptor):
        if descriptor == 0:
            raise OSError(25, "Inappropriate ioctl for device")
        return os.terminal_size(told)

    monkeypatch.setattr("accel_tui.cli.terminal_checks.os.get_terminal_size", size)
    here = Terminal.here()
    assert (here.interactive, here.size) == (True, taken)


def test_no_terminal_is_found_where_none_is(monkeypatch):
    def refuse(descriptor):
        raise OSError(25, "Inappropriate ioctl for device")

    monkeypatch.setattr("accel_tui.cli.terminal_checks.os.get_terminal_size", refuse)
    assert not Terminal.here().interactive


def test_a_terminal_in_a_line():
    environment = GOOD | {"TMUX": "yes", "TERM_PROGRAM": "WezTerm"}
    line = "xterm-256color, 120x40, true colour, utf-8, tmux, WezTerm"
    assert str(Terminal(environment, True, (120, 40), "utf-8")) == line
    assert str(Terminal({}, True, (80, 24), "ascii")) == "TERM not set, 80x24, 16 colours, ascii"
    assert str(Terminal(environment, False, (80, 24), "utf-8")) == "none"
