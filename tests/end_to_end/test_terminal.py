"""The harness itself, against a program of a few lines: what it says can be trusted."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.terminal import Terminal

PROGRAM = """
import os, signal
from textual.app import App
from textual.widgets import Input, Label

class Echo(App):
    BINDINGS = [("ctrl+q", "quit", "Quit")]
    def compose(self):
        yield Label("Type: ü ⣿", id="label")
        yield Input()
        yield Label(id="size")
    def on_resize(self, event):
        self.query_one("#size").update(f"{event.size.width} columns")
    def on_input_submitted(self, event):
        if event.value == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        self.query_one("#label").update(f"You typed {event.value} at {self.size.width}x{self.size.height}")

Echo().run()
print("goodbye")
"""


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[Terminal]:
    """A program that repeats what is typed."""
    script = tmp_path / "echo.py"
    script.write_text(PROGRAM)
    with Terminal([sys.executable, script], columns=60, rows=12) as terminal:
        terminal.wait_for("Type: ü ⣿")
        yield terminal


def test_what_is_typed_is_seen_and_everything_is_set_back_at_the_end(echo: Terminal) -> None:
    assert {"alternate screen", "cursor", "mouse"} <= set(echo.altered)
    assert echo.modes != echo.modes_before
    echo.send("hello", "enter")
    echo.wait_for("You typed hello at 60x12")
    echo.send("ctrl+q")
    assert echo.wait_closed() == 0
    assert echo.raw.rstrip().endswith(b"goodbye")
    assert echo.altered == []
    assert echo.modes == echo.modes_before


def test_a_window_can_change_its_size(echo: Terminal) -> None:
    echo.resize(80, 20)
    echo.wait_for("80 columns")
    echo.send("wider", "enter")
    echo.wait_for("You typed wider at 80x20")


def test_a_program_that_dies_leaves_the_terminal_altered_and_that_is_seen(echo: Terminal) -> None:
    echo.send("die", "enter")
    assert echo.wait_closed() == -signal.SIGKILL
    assert {"alternate screen", "cursor", "mouse"} <= set(echo.altered)
    assert echo.modes != echo.modes_before


def test_waiting_in_vain_tells_what_is_on_the_screen(echo: Terminal) -> None:
    with pytest.raises(AssertionError, match="Type: ü"):
        echo.wait_for("no such text", timeout=0.1)
