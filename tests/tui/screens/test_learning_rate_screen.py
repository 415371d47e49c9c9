"""Reading a learning rate, and the dialog that asks for it."""

import pytest
from textual.app import App
from textual.events import Key
from textual.widgets import Input, Label

from accel_engine.errors import UsageError
from accel_tui.screens.learning_rate_screen import LearningRateScreen, parse_rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [("0.01", 0.01), (" 1e-4 ", 1e-4), ("x0.5", 5e-4), ("*10", 1e-2), ("/10", 1e-4), ("X 2", 2e-3)],
)
def test_numbers_and_changes(text: str, rate: float) -> None:
    assert parse_rate(text, 1e-3) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["", "fast", "x", "x fast", "0", "-1", "nan", "inf", "/0", "x-1"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(UsageError):
        parse_rate(text, 1e-3)


def test_a_change_of_what_is_not_known() -> None:
    with pytest.raises(UsageError, match="unknown"):
        parse_rate("x0.5", None)


async def test_the_dialog_says_what_comes_of_it_and_returns_it() -> None:
    app = App[None]()
    answers: list[float | None] = []
    async with app.run_test() as pilot:
        app.push_screen(LearningRateScreen(1e-3), answers.append)
        await pilot.pause()
        verdict = app.screen.query_one("#verdict", Label)
        assert str(verdict.content) == "enter sets it, esc cancels"
        await pilot.press("f", "enter")
        assert "must be a number" in str(verdict.content)
        assert not answers
        await pilot.press("backspace", "x", ".", "5")
        assert "0.0005" in str(verdict.content)
        await pilot.press("enter")
        assert answers == [pytest.approx(5e-4)]


async def test_what_is_typed_right_after_enter_is_not_set() -> None:
    app = App[None]()
    answers: list[float | None] = []
    async with app.run_test() as pilot:
        app.push_screen(LearningRateScreen(1e-3), answers.append)
        await pilot.pause()
        for key, character in (("f", "f"), ("enter", "\r"), ("backspace", "\x7f"), ("1", "1")):
            app.post_message(Key(key, character))  # all at once, as pasted keys come
        await pilot.pause()
        assert app.screen.query_one(Input).value == "1"
        assert not answers


async def test_escape_changes_nothing() -> None:
    app = App[None]()
    answers: list[float | None] = []
    async with app.run_test() as pilot:
        app.push_screen(LearningRateScreen(None), answers.append)
        await pilot.press("1", "escape")
        assert answers == [None]


async def test_clicks_are_as_good_as_the_keys_that_are_named() -> None:
    app = App[None]()
    answers: list[float | None] = []
    async with app.run_test() as pilot:
        for text, place in (("1e-2", 2), ("1", 20)):  # enter sets 0.01, esc changes nothing
            app.push_screen(LearningRateScreen(1e-3), answers.append)
            await pilot.press(*text)
            await pilot.click("#verdict", offset=(place, 0))
        assert answers == [pytest.approx(1e-2), None]
