"""What a run says of itself, as bytes that a real terminal is sent."""

import re
import shlex
from pathlib import Path

import pytest

from end_to_end.terminal import Terminal
from tui.hostile import HOSTILE, make_run, obeyed

OWN = (
    r"\x1b\[\?25l\x1b\[2J"  # the first frame; nothing else clears the screen
    r"|\x1b\[[?<>=]?(?!2J)[\d;]*\$?[A-Za-z]"  # the cursor, colours, modes
    r"|\x1b\]2;accel-tui[^\x07]*\x07|\x1b\]22;[a-z-]*\x07"  # the title, the mouse's shape
    r"|\r|\n"
)
"""What the dashboard itself sends beside text."""


def check(terminal: Terminal) -> str:
    """See that a terminal was sent nothing but text and what is the program's own."""
    sent = terminal.raw.decode()
    for title in re.findall(r"\x1b\]2;([^\x07]*)\x07", sent):
        assert not obeyed(title)
    assert not obeyed(sent, OWN)
    return sent


def test_watching_a_run_sends_a_terminal_none_of_what_it_says_to_obey(program: Path) -> None:
    run = make_run()
    with Terminal([program, "watch", run.directory], columns=160, rows=45) as terminal:
        terminal.wait_for("Failed after")
        terminal.wait_for(r"H\x1b]0;X\x07\x1b[2J")
        terminal.send_bytes(b"\xe9\xff\xc3(\x80")  # no text of the terminal either ends anything
        terminal.send("l")
        terminal.wait_for("/ search")
        terminal.send("w")
        terminal.wait_for("rows true, columns predicted")
        terminal.send("q")
        assert terminal.wait_closed() == 0
        assert "52;c;UFdO" in check(terminal)


@pytest.mark.parametrize(
    "words",
    [
        "watch {run}",
        *(
            pytest.param(each, marks=pytest.mark.campaign)
            for each in ("watch {run} --plain", "runs", "compare {run} {other}")
        ),
    ],
)
def test_a_shell_is_sent_none_of_it_either(program: Path, words: str) -> None:
    here = {"run": make_run().directory, "other": make_run(plan=False).directory}
    arguments = shlex.split(words.format(**here))
    environment = {"TERM": "dumb"} if words == "watch {run}" else {}
    with Terminal([program, *arguments], environment=environment) as terminal:
        terminal.wait_closed()
        sent = terminal.raw.decode()
    assert r"\x1b" in sent
    assert not obeyed(sent, r"\r(\x1b\[1A)*\x1b\[2K|\x1b\[\?25[hl]|\x1b\[\d*m|\r\n")


@pytest.mark.campaign  # tests of the command line have such reasons, too
def test_a_user_s_model_that_raises_such_a_text_is_quoted(program: Path, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(f"def build():\n    raise ValueError({HOSTILE!r})\n")
    arguments = ["train", "--model", "net.py:build", "--name", HOSTILE]
    with Terminal([program, *arguments], directory=tmp_path, columns=200) as terminal:
        assert terminal.wait_closed() == 1
        sent = terminal.raw.decode()
    assert r"ValueError: H\x1b]0;X\x07\x1b[2J" in sent
    assert not obeyed(sent, r"\r(\x1b\[1A)*\x1b\[2K|\x1b\[\?25[hl]|\x1b\[\d*m|\r\n")
