"""What is told by way of the terminal, and to which of them."""

from collections.abc import AsyncIterator

import pytest

from accel_engine.events import Outcome
from accel_tui.app_protocol import Screens
from accel_tui.run_state.state import RunState
from accel_tui.settings.user_settings import Settings
from accel_tui.terminal.notifications import Notifier, has_title, notification, notification_line
from tui.fake_engine import FakeEngine
from tui.stand_ins import StubApp, shows, until

XTERM = {"TERM": "xterm-256color"}
TMUX = "\x1bPtmux;\x1b\x1b"
"""Before what tmux shall pass on, whose escape characters are doubled."""


@pytest.mark.parametrize(
    ("environ", "sent"),
    [
        (XTERM, ""),
        ({"TERM": "xterm-kitty"}, "\x1b]9;Done: loss 1\x07"),
        ({**XTERM, "TERM_PROGRAM": "iTerm.app"}, "\x1b]9;Done: loss 1\x07"),
        ({**XTERM, "TERM_PROGRAM": "WezTerm"}, "\x1b]9;Done: loss 1\x07"),
        ({"TERM": "foot"}, "\x1b]777;notify;Done;loss 1\x07"),
        ({**XTERM, "VTE_VERSION": "7600"}, "\x1b]777;notify;Done;loss 1\x07"),
        ({**XTERM, "LC_TERMINAL": "iTerm2"}, "\x1b]9;Done: loss 1\x07"),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/tmux", "TERM_PROGRAM": "tmux"}, ""),
        ({"TERM": "tmux-256color", "TMUX": "x", "KITTY_WINDOW_ID": "1"}, f"{TMUX}]9;Done: loss 1\x07\x1b\\"),
        ({"TERM": "screen", "TMUX": "x", "VTE_VERSION": "1"}, f"{TMUX}]777;notify;Done;loss 1\x07\x1b\\"),
        ({"TERM": "foot", "STY": "1.tty"}, "\x1bP\x1b]777;notify;Done;loss 1\x07\x1b\\"),
    ],
)
def test_a_terminal_is_told_to_notify_as_it_understands(environ: dict[str, str], sent: str) -> None:
    assert notification("Done", "loss 1", environ) == sent


@pytest.mark.parametrize(
    ("environ", "way", "sent"),
    [
        (XTERM, "osc9", "\x1b]9;Done\x07"),
        ({"TERM": "xterm-kitty"}, "osc777", "\x1b]777;notify;Done;\x07"),
        ({"TERM": "tmux-256color"}, "osc9", f"{TMUX}]9;Done\x07\x1b\\"),
    ],
)
def test_a_terminal_that_says_nothing_of_itself_is_told_as_it_is_settled(
    environ: dict[str, str], way: str, sent: str
) -> None:
    assert notification("Done", "", environ, way) == sent
    told: list[str] = []
    Notifier(told.append, Settings(notify_bell=False, notify_sequence=way), environ).ended("Done", "")
    assert told == [sent]


def test_no_word_ends_a_control_sequence_or_begins_one() -> None:
    assert notification_line("a\x07b\x1b]0;c\n") == r"a\x07b\x1b]0;c "
    assert notification("a;b", "c;d", {"TERM": "foot"}) == "\x1b]777;notify;a,b;c,d\x07"


@pytest.mark.parametrize(
    ("environ", "titled"),
    [
        (XTERM, True),
        ({"TERM": "tmux-256color", "TMUX": "x"}, True),
        ({"TERM": "screen-256color", "TMUX": "x"}, True),
        ({"TERM": "screen", "STY": "x"}, False),
        ({"TERM": "linux"}, False),
    ],
)
def test_a_title_goes_to_terminals_that_have_one(environ: dict[str, str], titled: bool) -> None:
    assert has_title(environ) is titled


@pytest.mark.parametrize(("bell", "desktop"), [(True, True), (True, False), (False, True), (False, False)])
def test_an_end_is_told_as_it_is_settled(bell: bool, desktop: bool) -> None:
    sent: list[str] = []
    settings = Settings(notify_bell=bell, notify_desktop=desktop)
    Notifier(sent.append, settings, {"TERM": "xterm-kitty"}).ended("Training failed", "")
    assert "".join(sent) == bell * "\x07" + desktop * "\x1b]9;Training failed\x07"


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    engine = FakeEngine().begin().build()
    yield engine
    engine.close()


@pytest.mark.parametrize(
    ("outcome", "rings"), [(Outcome.FINISHED, True), (Outcome.FAILED, True), (Outcome.STOPPED, False)]
)
async def test_the_title_says_how_far_a_run_is_and_its_end_rings(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, rings: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    engine.chunk([0.125] * 172)
    app, sent = StubApp(engine.directory), list[str]()
    app.settings = Settings(notify_sequence="osc9")
    monkeypatch.setattr(app, "send", sent.append)
    app.notifier = Notifier(sent.append, app.settings, {"TERM": "xterm-256color"})
    async with app.run_test() as pilot:
        await shows(pilot, "training")
        await until(pilot, lambda: any("accel-tui: cnn 43 % · loss 0.1250\x07" in words for words in sent), "a title")
        assert sent[0].startswith("\x1b[22;0t\x1b]2;accel-tui: cnn")
        assert "\x07" not in sent
        engine.end(outcome, "it is so")
        await until(pilot, lambda: any(f"cnn {outcome} " in words for words in sent), "the last title")
        assert ("\x07" in sent) is rings
        notified = [words for words in sent if words.startswith("\x1b]9;")]
        assert len(notified) == rings
        assert all(f"Training {outcome}: cnn on digits" in words for words in notified)
    assert sent[-1] == "\x1b[23;0t"


async def test_the_title_is_given_back_when_the_run_is_left(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.chunk([0.125] * 172)
    app, sent = StubApp(), list[str]()
    monkeypatch.setattr(app, "send", sent.append)
    app.notifier = Notifier(sent.append, app.settings, XTERM)
    async with app.run_test() as pilot:
        await shows(pilot, "Start")
        app.open_screen(Screens.RUN, engine.directory)
        await until(pilot, lambda: any("cnn 43 %" in words for words in sent), "a title")
        await pilot.press("d")
        await until(pilot, lambda: sent[-1] == "\x1b[23;0t", "the terminal's own title")


def test_nothing_is_said_in_the_title_where_it_is_settled_so() -> None:
    sent: list[str] = []
    notifier = Notifier(sent.append, Settings(title=False), XTERM)
    notifier.show(RunState())
    notifier.restore()
    assert not sent
