"""What the app sends its terminal shows what Textual would have shown, and waits for a link that is slow."""

import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import RenderableType
from textual import _compositor, events
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.events import Key
from textual.geometry import Size
from textual.screen import Screen

from accel_tui.app_protocol import Screens
from accel_tui.terminal import incremental_app, textual_private
from accel_tui.terminal.incremental_app import QUERY_INTERVAL_BYTES
from accel_tui.widgets.plan.field_finder import FieldFinder
from tui.fake_engine import FakeEngine
from tui.stand_ins import BareApp, StubApp, begun, shows, text_of, until
from tui.terminal.emulator import Emulator

Update = textual_private.ScreenUpdate


pytestmark = pytest.mark.usefixtures("installed")


class SeenApp(StubApp):
    """Paints on two terminals: on one as Textual does, on the other as we do."""

    def __init__(self) -> None:
        super().__init__()
        self.updates = 0
        self.frame_sent = {"textual": 0, "ours": 0}
        self._terminals: tuple[Emulator, Emulator] | None = None
        self._size_seen = Size()

    def agree(self) -> bool:
        """Whether both terminals show the same."""
        assert self._terminals
        theirs, ours = (terminal.picture() for terminal in self._terminals)
        return theirs == ours

    def _display(self, screen: "Screen[object]", renderable: RenderableType | None) -> None:
        if isinstance(renderable, Update) and not self._batch_count and screen.outer_size == self.size:
            if self.size != self._size_seen or self._terminals is None:
                self._size_seen, self._terminals = self.size, (Emulator(self.size), Emulator(self.size))
                self._canvas.clear()  # a resized terminal is told to the app before it paints; these two are not
            theirs, ours = self._terminals
            plain = renderable.render_segments(self.console)
            painted = self._canvas.paint(textual_private.strips_of(renderable), self.console)
            theirs.feed(plain)
            ours.feed(painted)
            self.updates += 1
            self.frame_sent["textual"] += len(plain.encode())
            self.frame_sent["ours"] += len(painted.encode())
        super()._display(screen, renderable)


async def test_every_picture_is_the_one_that_textual_paints() -> None:
    app = SeenApp()
    engine = FakeEngine()
    async with app.run_test(size=(110, 36), notifications=True) as pilot:

        async def do(*keys: str) -> None:
            await pilot.press(*keys)
            await pilot.pause()
            assert app.agree(), keys

        await shows(pilot, "Start")
        await do("down", "down")
        await do("question_mark")
        await do("escape", "t")
        await do("ctrl+p", "h")
        await do("escape")
        app.notify("日本語 é", title="wide")
        engine.begin().build().train(20)
        app.open_screen(Screens.RUN, engine.directory)
        await shows(pilot, "epoch")
        for _ in range(3):
            engine.train(7)
            await pilot.pause()
            assert app.agree()
        await do("i", "l")
        await do("q")
        await do("escape")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        await do("t")
    engine.close()
    assert app.updates > 10
    assert app.frame_sent["ours"] < app.frame_sent["textual"] / 2


async def test_a_full_link_is_not_painted_on_and_then_shows_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[object] = []
    monkeypatch.setattr(App, "_display", lambda self, screen, update: update and updates.append(update))
    app = StubApp()
    waiting = 0
    monkeypatch.setattr(incremental_app.IncrementalApp, "queued_writes", property(lambda _: waiting))
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "Start")
        waiting = 1000
        app.screen.refresh()
        await until(pilot, lambda: app._is_frame_pending, "the link to be found full")
        updates.clear()
        await pilot.press("question_mark", "escape", "t", "down")
        await pilot.pause()
        assert updates == []
        waiting = 0
        await until(pilot, lambda: updates, "the screen")
        assert isinstance(updates[0], incremental_app._CanvasUpdate)
        assert isinstance(updates[0]._update, _compositor.LayoutUpdate)


@pytest.mark.parametrize(
    ("before", "after"), [((120, 40), (80, 24)), ((200, 50), (120, 40)), ((100, 30), (60, 20)), ((80, 24), (120, 40))]
)
async def test_a_resized_terminal_keeps_nothing_of_the_old_size(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], after: tuple[int, int]
) -> None:
    terminal = Emulator(Size(*before))
    app = StubApp()

    def show(_: App[None], screen: "Screen[object]", update: RenderableType | None) -> None:
        del screen
        if isinstance(update, incremental_app._CanvasUpdate):
            terminal.feed(app._canvas.paint(textual_private.strips_of(update._update), app.console))

    monkeypatch.setattr(App, "_display", show)
    async with app.run_test(size=before) as pilot:
        await shows(pilot, "Start")
        await until(pilot, lambda: terminal.text() == text_of(pilot), "the screen")
        with monkeypatch.context() as patched:
            patched.setattr(App, "_check_resize", lambda _: None)  # the app knows the size, and its screen does not yet
            terminal.resize(Size(*after))
            await pilot.resize_terminal(*after)
            app.screen.refresh()
            await pilot.pause()
        app._check_resize()
        await until(pilot, lambda: app.screen.size == after, "the size")
        await until(pilot, lambda: terminal.text() == text_of(pilot), "the screen")


async def test_an_unknown_version_of_textual_paints_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[object] = []
    monkeypatch.setattr(App, "_display", lambda self, screen, update: updates.append(update))
    monkeypatch.setattr(textual_private, "SUPPORTED", False)
    async with StubApp().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "Start")
    assert any(isinstance(update, Update) for update in updates)
    assert not any(isinstance(update, incremental_app._CanvasUpdate) for update in updates)


async def test_the_whole_screen_is_painted_anew_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    app = SeenApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "engine: ready")
        await begun(pilot)
        app.frame_sent["ours"] = 0
        app.screen.refresh()
        await pilot.pause()
        assert app.frame_sent["ours"] < 200
        await pilot.press("ctrl+l")
        await until(pilot, lambda: app.frame_sent["ours"] > 1000, "the screen")


@pytest.mark.parametrize(
    ("reads", "keys"),
    [
        (["\x1b[1;5R\r"], ["enter"]),
        (["\r\x1b[1;5R"], ["enter"]),
        (["\x1b\x1b[1;5R"], ["escape"]),
        (["\x1b", "\x1b[1;5R"], ["escape"]),
        (["\x1b[1;", "5R\r"], ["enter"]),
        (["\x1b[A\x1b[1;5R\x1b[B"], ["up", "down"]),
        (["j\x1b[1;5Rk"], ["j", "k"]),
    ],
)
def test_no_key_is_lost_beside_an_answer(reads: list[str], keys: list[str]) -> None:
    parser = XTermParser()
    read = [event for data in reads for event in parser.feed(data)]
    assert [event.key for event in read if isinstance(event, events.Key)] == keys
    assert [(event.x, event.y) for event in read if isinstance(event, events.CursorPosition)] == [(4, 0)]


async def test_leaving_waits_for_the_terminal_to_answer() -> None:
    app = BareApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app._flow.reply_received(app._flow.frame_sent(QUERY_INTERVAL_BYTES) or 0)
        number = app._flow.frame_sent(QUERY_INTERVAL_BYTES) or 0
        app.exit()
        assert not app._exit
        app.post_message(events.CursorPosition(number - 1, 0))
        await until(pilot, lambda: app._exit, "the end")


async def test_leaving_does_not_wait_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental_app, "LAST_SECONDS", 0.01)
    app = BareApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app._flow.reply_received(app._flow.frame_sent(QUERY_INTERVAL_BYTES) or 0)
        app._flow.frame_sent(QUERY_INTERVAL_BYTES)
        app.exit()
        await until(pilot, lambda: app._exit, "the end")


class TypedAheadApp(StubApp):
    """Keys arrive before the first screen has widgets."""

    def __init__(self, *keys: Key) -> None:
        super().__init__()
        self._keys = keys

    def get_default_screen(self) -> Any:
        for key in self._keys:
            self.post_message(key)
        return super().get_default_screen()


@pytest.mark.parametrize("key", [Key("slash", "/"), Key("f3", None)], ids=["slash", "f3"])
async def test_keys_before_the_first_frame_are_answered_in_their_order(key: Key) -> None:
    async with TypedAheadApp(key, *(Key(letter, letter) for letter in "decay")).run_test(size=(80, 24)) as pilot:
        finder = pilot.app.screen.query_one(FieldFinder)
        await until(pilot, lambda: finder.is_open and finder.selected == "weight_decay", "the field")


class ToldApp(StubApp):
    """Notes what it tells."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def notify(self, message: str, **_: Any) -> None:
        self.told.append(message)


async def test_in_tmux_a_text_is_copied_by_tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmux, got = tmp_path / "tmux", tmp_path / "got"
    tmux.write_text(f'#!/bin/sh\necho "$@" > {got}.part\ncat >> {got}.part\nmv {got}.part {got}\n')
    tmux.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    monkeypatch.setattr(incremental_app, "TMUX_SECONDS", 120.0)
    app = ToldApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await shows(pilot, "Start")
        await pilot.press("Y")
        await until(pilot, got.exists, "tmux")
        assert got.read_text() == "load-buffer -w -\naccel-tui train"
        assert app.clipboard == "accel-tui train"
        assert app.told == ["Command sent to tmux and the terminal's clipboard"]
        tmux.write_text("#!/bin/sh\necho no server running >&2\nexit 1\n")
        app.copy_to_clipboard("text")
        await until(pilot, lambda: len(app.told) == 2, "the error")
        assert app.told[-1] == "tmux load-buffer -w -: no server running"


async def test_outside_of_tmux_a_text_is_sent_to_the_terminal() -> None:
    app = ToldApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await shows(pilot, "Start")
        await pilot.press("Y")
        await until(pilot, lambda: app.told == ["Command sent to the terminal's clipboard"], "what is told")


async def test_a_screenshot_has_a_place_and_says_where(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = tmp_path / "Downloads"
    monkeypatch.setattr(incremental_app, "user_downloads_path", lambda: downloads)
    monkeypatch.chdir(tmp_path)
    app = StubApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "Start")

        async def saved(path: Path | None = None) -> tuple[str, str]:
            app.clear_notifications()
            app.deliver_screenshot("shot.svg", path and str(path))
            await until(pilot, lambda: list(app._notifications), "the notification")
            (said,) = app._notifications
            return said.title, said.message

        assert await saved() == ("Screenshot saved", str(tmp_path / "shot.svg")), "there is no such folder"
        assert "</svg>" in (tmp_path / "shot.svg").read_text()
        downloads.mkdir()
        assert await saved() == ("Screenshot saved", str(downloads / "shot.svg"))
        title, message = await saved(tmp_path / "nowhere")
        assert title == "Screenshot not saved"
        assert "No such file or directory" in message
