"""Whatever a run says of itself, no screen lets it act on the terminal or in the program."""

import pytest
from rich.console import Console
from rich.segment import Segment
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.strip import Strip

from accel_engine.advice import Category, Confidence, Cure, Evidence, Finding, Gain
from accel_engine.devices.device_types import Device, Inventory, UnavailableKind
from accel_engine.events import Warned
from accel_engine.process.warm_engine import EngineState
from accel_engine.requests.describe_model import Description
from accel_tui.screens.diagnostics_screen import DiagnosticsScreen
from accel_tui.terminal.canvas import Canvas
from accel_tui.widgets.diagnostics.pages import tabs_of
from tui.example_reports import REPORTS
from tui.fake_engine import FakeEngine
from tui.hostile import HOSTILE, make_run, obeyed
from tui.screens.run_app import opened
from tui.stand_in_findings import find
from tui.stand_ins import BareApp, StubApp, StubEngine, shows, text_of, until

MACHINE = Inventory(
    (Device("cpu:0", "cpu", HOSTILE, 1 << 30, 4), Device("gpu:0", "gpu", HOSTILE, 1 << 30)),
    (UnavailableKind("tpu", HOSTILE),),
)

WALKS = {
    "runs": (("r",), "failed"),
    "run": (("r", "enter"), "Failed after"),
    "log": (("r", "enter", "l"), "/ search"),
    "charts": (("r", "enter", "a"), "space or click"),
    "confusion": (("r", "enter", "w"), "(300 of 309)"),
    "pictures": (("r", "enter", "w", "4"), "highest loss first"),
    "logged": (("r", "enter", "w", "5", "down"), "characters"),
    "layers": (("r", "enter", "w", "6"), "1,500 parameters"),
    "advice": (("r", "A"), "Looked at"),
    "comparison": (("r", "space", "space", "c"), "differs from a"),
    "deletion": (("r", "delete"), "This cannot be undone"),
    "labels": (("r", "e"), "Edit "),
    "palette": (("r", "ctrl+p", *"open"), "open "),
}
"""The keys that lead to each screen, and what of our own is seen there."""

LEADING = ("r", "enter", "w", "A", "c", "delete", "e", "a", "ctrl+p")
"""The keys that lead to another screen."""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[FakeEngine]:
    cure = Cure(HOSTILE, {"name": HOSTILE}, HOSTILE, Gain(HOSTILE, HOSTILE))
    find(monkeypatch, Finding("x", Category.SPEED, HOSTILE, (Evidence(HOSTILE),), Confidence.LIKELY, HOSTILE, (cure,)))
    return [make_run(), make_run(plan=False)]


def check(pilot: Pilot[None]) -> str:
    """See that nothing on screen is obeyed by a terminal, nor acts in the program; give the text of it."""
    for strip in pilot.app.screen._compositor.render_strips():
        for segment in strip:
            assert not obeyed(segment.text), segment
            action = str(segment.style.meta.get("@click", "")) if segment.style else ""
            assert "bell" not in action, segment
            assert not (segment.style and segment.style.link)
    return text_of(pilot)


async def walk(pilot: Pilot[None], place: str) -> str:
    """Go to a screen, and look at every frame on the way."""
    keys, seen = WALKS[place]
    for key in keys:
        shown = pilot.app.screen
        if key == "down":
            await shows(pilot, "step 150")  # the list has the focus once its first item is shown
        await pilot.press(key)
        check(pilot)
        if key in LEADING and not isinstance(shown, CommandPalette):
            await until(pilot, lambda shown=shown: pilot.app.screen is not shown, "another screen")
        if key == "r":
            await shows(pilot, "failed", "2 runs")
    await shows(pilot, seen)
    return check(pilot)


@pytest.mark.share(4)
@pytest.mark.parametrize("size", [(120, 40), (200, 120)], ids=str)
@pytest.mark.parametrize("place", WALKS)
async def test_no_screen_shows_what_a_terminal_obeys(runs: list[FakeEngine], place: str, size: tuple[int, int]) -> None:
    async with BareApp(inventory=MACHINE).run_test(size=size) as pilot:
        text = await walk(pilot, place)
        assert r"\x1b" in text or place == "charts"


async def test_no_diagnostics_of_any_task_show_what_a_terminal_obeys(runs: list[FakeEngine]) -> None:
    async with opened(runs[0].directory, (120, 40)) as pilot:
        await shows(pilot, "Failed after")
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, DiagnosticsScreen), "the screen")
        screen = pilot.app.screen
        assert isinstance(screen, DiagnosticsScreen)
        await until(pilot, lambda: len(screen.outputs) == len(REPORTS), "the reports")
        for output, report in enumerate(screen.outputs):
            for number, name in enumerate(tabs_of(report, has_media=True), 1):
                await pilot.press(str(number))
                await until(pilot, lambda name=name: screen.tab == name, name)  # type: ignore[misc]
                check(pilot)
            await pilot.press("O")
            await until(pilot, lambda output=output: screen.output != output, "the next output")  # type: ignore[misc]


async def test_what_happens_while_one_looks_is_shown_as_it_is(hurried: None) -> None:
    engine = make_run(ended=False)
    async with opened(engine.directory, (120, 40)) as pilot:
        await shows(pilot, "training")
        await pilot.press("i")
        check(pilot)
        engine.say(Warned, message=HOSTILE)
        await until(pilot, lambda: len(pilot.app._notifications), "a notification")
        await shows(pilot, r"H\x1b]0;X")
        check(pilot)
        engine.end(reason=HOSTILE, hint=HOSTILE)
        await shows(pilot, "finished")
        check(pilot)
    engine.close()


async def test_the_form_shows_what_devices_engines_and_the_user_s_model_say_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(StubEngine, "describe", lambda self, plan: Description(problem=f"model{HOSTILE}"))
    async with StubApp(inventory=MACHINE).run_test(size=(200, 50)) as pilot:
        app = pilot.app
        assert isinstance(app, StubApp)
        await shows(pilot, r"modelH\x1b]0;X", "gpu:0")
        check(pilot)
        app.engines[-1].be(EngineState.FAILED, f"engine{HOSTILE}")
        await shows(pilot, r"engineH\x1b]0;X")
        check(pilot)
        app.call_later(app.launcher._failed, f"start{HOSTILE}", None)
        await shows(pilot, r"startH\x1b]0;X")
        check(pilot)


async def test_a_notification_is_never_markup_whoever_tells_it() -> None:
    async with BareApp().run_test(size=(120, 40), notifications=True) as pilot:
        pilot.app.screen.notify(HOSTILE, title=HOSTILE)
        await shows(pilot, r"H\x1b]0;X", "=app.bell]m[/]")
        check(pilot)


async def test_the_palette_finds_a_run_and_shows_its_name_as_it_is(runs: list[FakeEngine]) -> None:
    async with BareApp().run_test(size=(120, 40)) as pilot:
        await walk(pilot, "palette")
        assert isinstance(pilot.app.screen, CommandPalette)
        await shows(pilot, r"H\x1b]0;X")
        assert "[@click=app.bell]" in check(pilot)


def test_the_canvas_sends_nothing_that_a_widget_forgot_to_clean() -> None:
    sent = Canvas().paint([(0, 0, Strip([Segment(f"a{HOSTILE}\nb")]))], Console())
    assert not obeyed(sent, r"\x1b\[[\d;]*[HCm]")
    assert "]52;c;UFdO" in sent  # what is left of it says nothing to a terminal
