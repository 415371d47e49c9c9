"""Settings, colours and characters, as the installed program has them in a real terminal."""

import re
from pathlib import Path

import pytest

from end_to_end.terminal import Terminal
from tui.fake_engine import FakeEngine

pytestmark = pytest.mark.share(3)

SGR = re.compile(rb"\x1b\[([\d;]*)m")


def colours(raw: bytes) -> set[str]:
    """The codes of colours, of any kind, that were written."""
    codes = set(b";".join(SGR.findall(raw)).decode().split(";"))
    return {code for code in codes if re.fullmatch(r"[34][0-8]|9\d|10\d", code)}


@pytest.fixture
def open_terminal(program: Path):
    opened = []

    def start(*arguments: str, **environment: str) -> Terminal:
        opened.append(Terminal([program, *arguments], columns=110, rows=36, environment=environment))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


@pytest.fixture
def ended() -> str:
    """A run: the program starts no engine beside one."""
    engine = FakeEngine()
    engine.begin().build().train(100)
    engine.end_epoch()
    engine.end()
    engine.close()
    return engine.directory.name


def leave(terminal: Terminal) -> None:
    terminal.send("q")
    assert terminal.wait_closed() == 0


def test_without_colours_none_is_sent_and_what_is_chosen_is_reversed(open_terminal, ended) -> None:
    terminal = open_terminal("watch", ended, NO_COLOR="1")
    terminal.wait_for("validation")
    terminal.send("?")
    terminal.wait_for("esc closes")
    terminal.send("escape")
    terminal.wait_for(lambda text: "esc closes" not in text)
    terminal.send("r")
    terminal.wait_for("1 run")
    leave(terminal)
    assert colours(terminal.raw) == set()
    assert any("7" in codes.decode().split(";") for codes in SGR.findall(terminal.raw))


def test_sixteen_colours_are_the_terminals_own(open_terminal, ended) -> None:
    terminal = open_terminal("watch", ended, TERM="xterm", COLORTERM="")
    terminal.wait_for("validation")
    leave(terminal)
    assert colours(terminal.raw)
    assert not {"38", "48"} & colours(terminal.raw)


def test_the_number_of_colours_can_be_settled(open_terminal, ended, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('colours = "256"\n')
    terminal = open_terminal("watch", ended, ACCEL_TUI_SETTINGS=str(file), NO_COLOR="1")
    terminal.wait_for("validation")
    leave(terminal)
    assert b"38;5;" in terminal.raw
    assert b"38;2;" not in terminal.raw


@pytest.mark.campaign  # the two before it choose numbers of colours, too
def test_256_colours_are_mixed_no_further(open_terminal, ended) -> None:
    terminal = open_terminal("watch", ended, COLORTERM="")
    terminal.wait_for("validation")
    leave(terminal)
    assert b"38;5;" in terminal.raw
    assert b"38;2;" not in terminal.raw


def test_a_run_is_drawn_in_ascii_where_the_locale_has_no_more(open_terminal, ended) -> None:
    terminal = open_terminal("watch", ended, LC_ALL="C")
    terminal.wait_for("finished")
    terminal.wait_for("validation")
    terminal.send("?")
    terminal.wait_for("- Keys -")
    terminal.send("escape")
    terminal.wait_for(lambda text: "- Keys -" not in text)
    leave(terminal)
    assert terminal.raw.isascii()


def test_settings_that_are_wrong_open_nothing(open_terminal, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('theme = "accel-drak"\n')
    terminal = open_terminal(ACCEL_TUI_SETTINGS=str(file))
    assert terminal.wait_closed() == 2
    assert "settings.toml:1: unknown theme 'accel-drak'" in terminal.text.replace("\n", "")
    assert b"\x1b[?1049h" not in terminal.raw


def test_keys_that_are_wrong_end_it_with_every_mistake(open_terminal, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[keys]\n"run.puase" = "x"\n')
    terminal = open_terminal(ACCEL_TUI_SETTINGS=str(file))
    assert terminal.wait_closed() == 2
    assert "unknownkeybinding'run.puase';didyoumeanrun.pause" in "".join(terminal.text.split())
    assert terminal.altered == []
    assert terminal.modes == terminal.modes_before


def test_settings_are_taken_by_the_form(open_terminal, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('theme = "accel-light"\n[plan]\nepochs = 3\n')
    terminal = open_terminal(ACCEL_TUI_SETTINGS=str(file))
    terminal.wait_for("accel-tui train --epochs 3")
    leave(terminal)
    assert b"48;2;251;250;247" in terminal.raw


def test_a_terminal_that_cannot_be_drawn_on_is_told_what_can(open_terminal) -> None:
    terminal = open_terminal(TERM="dumb")
    assert terminal.wait_closed() == 2
    assert "the dashboard requires a full-screen terminal; found TERM='dumb'" in terminal.text
    assert "accel-tui train" in terminal.text
