"""What the program needs of Textual beside its public names, and what happens without it."""

import re
from pathlib import Path

import pytest
from textual._xterm_parser import XTermParser
from textual.app import App, ComposeResult
from textual.content import Content
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from accel_tui import screens
from accel_tui.terminal import textual_private
from accel_tui.terminal.dirty_regions import DirtyRegionScreen
from accel_tui.terminal.textual_private import FrameApp


def test_this_version_of_textual_has_all_private_names() -> None:
    assert textual_private.SUPPORTED


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (App, "_display"),
        (Screen, "_compositor_refresh"),
        (textual_private.Compositor, "visible_widgets"),
        (type(Widget.virtual_size), "_layout"),
    ],
)
def test_a_version_that_lacks_one_is_noticed(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> None:
    if name == "_layout":
        monkeypatch.delattr(Widget.virtual_size, name)
    else:
        monkeypatch.delattr(kind, name)
    assert not textual_private.is_supported()


class _Wanting(Widget):
    """Needs its child when it is mounted."""

    def on_mount(self) -> None:
        self.query_one(Static).update("mounted")


class _LeavesTheApp(_Wanting):
    def compose(self) -> ComposeResult:
        self.app.exit()
        yield Static()


class _GoesAway(_Wanting):
    def compose(self) -> ComposeResult:
        self.remove()
        yield Static()


@pytest.mark.parametrize("widget", [_LeavesTheApp, _GoesAway])
async def test_what_is_left_while_it_is_mounted_fails_in_silence(widget: type[_Wanting]) -> None:
    async with FrameApp().run_test() as pilot:
        await pilot.app.screen.mount(widget())


class _PutsOff(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Static()

    def late(self) -> None:
        self.query_one(Static).update("late")


async def leave_what_is_put_off(app: App[None]) -> None:
    async with app.run_test() as pilot:
        screen = _PutsOff()
        await app.push_screen(screen)
        await app.pop_screen()
        app.screen._invoke_later(screen.late, screen)
        await pilot.pause()


async def test_what_a_screen_put_off_fails_in_silence_once_it_is_left() -> None:
    await leave_what_is_put_off(FrameApp())
    with pytest.raises(NoMatches):
        await leave_what_is_put_off(App())


async def test_textual_by_itself_fails_there() -> None:
    with pytest.raises(NoMatches):
        async with App[None]().run_test() as pilot:
            await pilot.app.screen.mount(_LeavesTheApp())


async def test_what_is_missing_of_a_widget_that_stays_is_an_error() -> None:
    with pytest.raises(NoMatches):
        async with FrameApp().run_test() as pilot:
            await pilot.app.screen.mount(_Wanting())


@pytest.mark.parametrize("sequence", ["\x1b[0;0;1000000000000R", "\x1b[1114112u"], ids=["too large", "no character"])
def test_a_key_whose_number_is_no_character_is_ignored(sequence: str) -> None:
    parser = XTermParser()
    keys = [*parser.feed(sequence), *parser.feed("a")]
    assert [getattr(key, "character", None) for key in keys] == ["a"]


def test_each_style_sheet_is_about_its_own_screens() -> None:
    for path in Path(screens.__file__).parent.glob("*.tcss"):
        text, depth = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL), 0
        for line in text.splitlines():
            if not depth and line.strip(" }"):
                for selector in line.partition("{")[0].split(","):
                    assert re.match(r"\s*[A-Z]\w*Screen\b", selector), f"{path.name}: {line}"
            depth += line.count("{") - line.count("}")


class _Sheeted(DirtyRegionScreen):
    def compose(self) -> ComposeResult:
        yield Static("shown")


async def test_a_screen_has_its_sheet_and_later_the_new_theme(tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.tcss"
    sheet.write_text("_Sheeted { Static { color: $primary; width: 7; } }")
    app = FrameApp()
    async with app.run_test() as pilot:
        screen = type("_Sheeted", (_Sheeted,), {"CSS_PATH": str(sheet)})()
        await app.push_screen(screen)
        shown = screen.query_one(Static)
        await pilot.pause()
        before = shown.styles.color
        assert shown.size.width == 7
        await app.push_screen(_Sheeted())
        app.theme = "textual-light"
        await pilot.pause()
        app.pop_screen()
        await pilot.pause()
        assert shown.styles.color != before
        assert shown.styles.color.hex == app.theme_variables["primary"].upper()


async def test_a_new_title_repaints_no_more_than_its_line() -> None:
    app = FrameApp()
    async with app.run_test() as pilot:
        framed = Static("text")
        framed.styles.border = ("round", "white")
        await app.screen.mount(framed)
        await pilot.pause()
        framed._dirty_regions.clear()
        textual_private.show_border_title(framed, Content("title"))
        assert [region.height for region in framed._dirty_regions] == [1]
        await pilot.pause()
        assert "title" in framed.render_lines(framed.outer_size.region)[0].text
