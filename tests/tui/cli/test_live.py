"""What commands draw in place."""

import io

import pyte
import pytest

from accel_tui.cli.live import LiveArea, cut_line, reading_bar, with_bar


class Terminal(io.StringIO):
    """A terminal of 40 columns, and what it shows."""

    encoding = "utf-8"  # type: ignore[assignment]

    def shown(self) -> list[str]:
        screen = pyte.Screen(40, 10)
        pyte.Stream(screen).feed(self.getvalue().replace("\n", "\r\n"))
        return [line.rstrip() for line in screen.display if line.strip()]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    return Terminal()


def area(terminal: Terminal) -> LiveArea:
    return LiveArea(terminal, lambda: (40, 10))


def test_lines_stay_above_what_is_drawn_again(terminal: Terminal) -> None:
    live = area(terminal)
    live.show(cut_line("one"), ["first", "second"])
    live.show(cut_line("two"))
    live.show(cut_line("three"), ["third"])
    assert terminal.shown() == ["first", "second", "third", "three"]
    live.clear()
    assert terminal.shown() == ["first", "second", "third"]
    live.show(cut_line("four"))
    live.leave()
    assert terminal.shown() == ["first", "second", "third", "four"]


def test_what_did_not_change_is_not_written_again(terminal: Terminal) -> None:
    live = area(terminal)
    live.show(with_bar(0.5, "half", 37))
    written = terminal.getvalue()
    live.show(with_bar(0.5, "half", 37))
    assert terminal.getvalue() == written


def test_text_is_no_markup_no_emoji_and_no_control_sequence(terminal: Terminal) -> None:
    live = area(terminal)
    live.show(cut_line("[red]x[/red] \x1b[2J"), ["[b]:smile:[/b] \x1b]0;title\x07"])
    assert terminal.shown() == [r"[b]:smile:[/b] \x1b]0;title\x07", r"[red]x[/red] \x1b[2J"]


def test_the_cursor_stays_visible(terminal: Terminal) -> None:
    live = area(terminal)
    live.show(cut_line("one"))
    live.clear()
    assert "\x1b[?25" not in terminal.getvalue()


def test_reading_is_counted_on_a_terminal_and_leaves_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reading_bar(terminal) as show:
        show(1, 2)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    with reading_bar(terminal) as show:
        show(1200, 0)
        assert terminal.shown() == ["1,200 examples read"]
        show(1, 2)
        assert "1 of 2 examples read" in terminal.getvalue()
    assert terminal.shown() == []
