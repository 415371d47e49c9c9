"""What is left while it is being put together."""

import pytest
from textual.app import App, ComposeResult
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from accel_tui.terminal.safe_unmount import SafeUnmountApp


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
    async with SafeUnmountApp().run_test() as pilot:
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
    await leave_what_is_put_off(SafeUnmountApp())
    with pytest.raises(NoMatches):
        await leave_what_is_put_off(App())


async def test_textual_by_itself_fails_there() -> None:
    with pytest.raises(NoMatches):
        async with App[None]().run_test() as pilot:
            await pilot.app.screen.mount(_LeavesTheApp())


async def test_what_is_missing_of_a_widget_that_stays_is_an_error() -> None:
    with pytest.raises(NoMatches):
        async with SafeUnmountApp().run_test() as pilot:
            await pilot.app.screen.mount(_Wanting())
