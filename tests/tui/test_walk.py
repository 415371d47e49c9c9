"""A walk over the screens: what has the keys is always seen, and tab leads to all that can have them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from accel_engine.run.diagnostics import Layer, LayerTable, ValidationReport
from accel_engine.run.media import LoggedText
from accel_tui.appearance.theme import ANSI, LIGHT
from accel_tui.palette import KeyCommands
from accel_tui.screens.help_screen import KeyRows
from accel_tui.screens.run_screen import RunScreen
from accel_tui.settings.user_settings import Settings
from tui.example_reports import binary
from tui.fake_engine import FakeEngine
from tui.stand_in_findings import POOR, SLOW, find
from tui.stand_ins import BareApp, StubApp, begun, shows, text_of, until

PLACES = {
    "plan": ((), "finished"),
    "runs": (("r",), "finished"),
    "help of the plan": (("question_mark",), "esc closes"),
    "run": (("r", "enter"), "Details"),
    "run with its log": (("r", "enter", "l"), "/ search"),
    "help of the run": (("r", "enter", "question_mark"), "esc closes"),
    "choice of charts": (("r", "enter", "a"), "space or click"),
    "confusion": (("r", "enter", "w"), "(890 of 1,000)"),
    "classes": (("r", "enter", "w", "2"), "lowest first"),
    "scores": (("r", "enter", "w", "3"), "threshold 0.500"),
    "samples": (("r", "enter", "w", "4"), "highest loss first"),
    "logged": (("r", "enter", "w", "5"), "sentence  step 150"),
    "layers": (("r", "enter", "w", "6"), "1,500 parameters"),
    "advice": (("r", "A"), "It fell to 0.41"),
    "comparison": (("r", "space", "space", "c"), "differs from a"),
    "bench": (("r", "b"), "The most that p99 may be"),
    "export": (("r", "E"), "by format"),
    "predict": (("r", "P"), "File or folder with the examples"),
    "question": (("r", "delete"), "This cannot be undone"),
    "labels": (("r", "e"), "ctrl+s saves"),
}
"""The keys that lead to each screen, and what is seen there."""

LEADING = ("r", "enter", "question_mark", "w", "A", "c", "delete", "e", "b", "E", "P", "a")
"""The keys that lead to another screen."""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    find(monkeypatch, SLOW, POOR)
    for _ in range(2):
        engine = FakeEngine().begin().build().train(150)
        engine.writer.write_diagnostics(ValidationReport((binary(),)), 150)
        engine.writer.write_diagnostics(LayerTable((Layer("dense", "Dense", 0, (10,), 1500, 1500, 1e6),), 1e6), 0)
        engine.writer.write_media(150, 1.0, "sentence", LoggedText("of a few words"))
        engine.save()
        engine.end()
        (engine.directory / "log.txt").write_text("begun\nended\n")
        engine.close()
    return engine


@asynccontextmanager
async def at(place: str) -> AsyncIterator[Pilot[None]]:
    keys, seen = PLACES[place]
    app = BareApp() if keys[:1] == ("r",) else StubApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await begun(pilot)
        for key in keys:
            shown = pilot.app.screen
            await pilot.press(key)
            if key in LEADING:
                await until(pilot, lambda shown=shown: pilot.app.screen is not shown, "another screen")
            if key == "r":
                await shows(pilot, "finished", "2 runs")
        await shows(pilot, seen)
        await until(pilot, lambda: bool(pilot.app.screen.focus_chain), "something that takes keys")
        yield pilot


async def quiet(pilot: Pilot[None]) -> None:
    screen = pilot.app.screen
    await until(pilot, lambda: not (screen._layout_required or screen._dirty_widgets), "the frame")


def picture(widget: Widget) -> object:
    """What is seen where a widget is, colours too, but for the cursor that blinks."""
    region = widget.region
    rows = widget.screen._compositor.render_strips()[region.y : region.bottom]
    return [list(row.crop(region.x, region.right)) for row in rows]


def colourless(widget: Widget) -> object:
    """The characters of a widget and of what it stands in, with what they have but colours."""
    assert isinstance(widget.parent, Widget)
    region = widget.parent.region
    rows = widget.screen._compositor.render_strips()[region.y : region.bottom]
    return [
        [(character, segment.style and (segment.style.bold, segment.style.reverse, segment.style.underline))]
        for row in rows
        for segment in row.crop(region.x, region.right)
        for character in segment.text
    ]


async def unseen(pilot: Pilot[None], picture: Callable[[Widget], object] = picture) -> list[Widget]:
    """Those of the screen that look the same with the keys and without."""
    screen, found = pilot.app.screen, []
    for widget in screen.focus_chain:
        screen.set_focus(None)
        await quiet(pilot)
        without = picture(widget)
        screen.set_focus(widget)
        await quiet(pilot)
        if picture(widget) == without:
            found.append(widget)
    return found


@pytest.mark.share(2)
@pytest.mark.parametrize("place", PLACES)
async def test_each_screen_is_painted_what_has_the_keys_is_seen_and_the_palette_has_whatever_keys_do(
    engine: FakeEngine, place: str
) -> None:
    async with at(place) as pilot:
        check_backgrounds(pilot)
        screen = pilot.app.screen
        chain = screen.focus_chain
        screen.set_focus(chain[0])
        if place != "plan":  # whose key goes to the next panel
            await check_tabs(pilot, chain)
        for widget in chain:
            screen.set_focus(widget)
            offered = " ".join(f"{title} {about}" for title, about, _ in KeyCommands(screen).commands())
            told = {}  # by action, once: a screen is left by several keys
            for active in screen.active_bindings.values():
                if active.binding.id and active.enabled:
                    told.setdefault((active.node, active.binding.action), []).append(active.tooltip in offered)
            assert all(any(found) for found in told.values())
        assert not await unseen(pilot)
        if place in ("plan", "run with its log", "advice", "pictures"):
            pilot.app.theme = LIGHT.name
            assert not await unseen(pilot)


async def check_tabs(pilot: Pilot[None], chain: list[Widget]) -> None:
    """The key for the next place goes through all of them, and back."""
    screen, gone = pilot.app.screen, []
    for _ in chain:
        assert screen.focused
        gone.append(screen.focused)
        await pilot.press("tab")
    assert gone == chain
    assert screen.focused is chain[0]
    await pilot.press("shift+tab")
    assert screen.focused is chain[-1]


def check_backgrounds(pilot: Pilot[None]) -> None:
    """No cell has the background of the terminal."""
    rows = pilot.app.screen._compositor.render_strips()
    bare = [
        (y, segment.text)
        for y, row in enumerate(rows)
        for segment in row
        if segment.text and not (segment.style and segment.style.bgcolor)
    ]
    assert bare == []


@pytest.mark.share(3)
@pytest.mark.parametrize("place", ["plan", "runs", "question", "run with its log", "advice", "comparison"])
async def test_what_has_the_keys_is_seen_without_colours(
    engine: FakeEngine, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with at(place) as pilot:
        pilot.app.theme = ANSI.name  # as the program has it where there are no colours
        await quiet(pilot)
        assert pilot.app.no_color
        assert not await unseen(pilot, colourless)


async def test_a_click_on_a_key_in_help_does_what_it_does(engine: FakeEngine) -> None:
    async with at("help of the run") as pilot:
        rows = next(each for each in pilot.app.screen.query(KeyRows) if "Show or hide the log" in str(each.render()))
        lines = str(rows.render()).splitlines()
        rows.scroll_visible(animate=False)
        await pilot.pause()
        await pilot.click(rows, offset=(20, next(y for y, line in enumerate(lines) if "Show or hide the log" in line)))
        await shows(pilot, "/ search")
        assert isinstance(pilot.app.screen, RunScreen)


async def test_help_shows_keys_as_they_are_set_by_what_they_are_for() -> None:
    app = StubApp()
    app.settings = Settings(keys={"new-run.copy": "ctrl+x"})
    app.set_keymap(dict(app.settings.keys))
    async with app.run_test(size=(120, 60)) as pilot:
        await shows(pilot, "Start")
        await pilot.press("question_mark")
        await shows(pilot, "Train", "Copy the equivalent command line")
        line = next(line for line in text_of(pilot).splitlines() if "Copy the equivalent command line" in line)
        assert "^x" in line
        assert "F5" not in line
