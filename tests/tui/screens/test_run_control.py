"""Steering a run from its screen, and what becomes of it when one leaves."""

import pytest
from textual.app import App
from textual.events import Key
from textual.widgets import Button, Input, Label

from accel_engine.errors import RunError, UsageError
from accel_engine.events import Phase
from accel_engine.run.store.database import RunDatabase
from accel_tui.run_launcher import LaunchState
from accel_tui.screens.asking import QuestionScreen
from accel_tui.screens.run_questions import LearningRateScreen, parse_rate
from tui.fake_engine import FakeEngine
from tui.screens.run_app import SMALL, WIDE, app_of, opened, screen_of, told
from tui.stand_ins import more, shows, text_of, until

pytestmark = pytest.mark.usefixtures("hurried")


async def test_pause_and_resume_are_asked_and_their_answers_shown(obedient: FakeEngine) -> None:
    obedient.train(20)
    async with opened(obedient.directory) as pilot:
        await shows(pilot, "training", "p Pause")
        await pilot.press("p")
        await shows(pilot, "paused", "p Resume")
        await until(pilot, lambda: "pause at step 20" in told(pilot), "the answer")
        await pilot.press("space")
        await shows(pilot, "training", "p Pause")
        await until(pilot, lambda: "resume at step 20" in told(pilot), "the answer")
    connection = RunDatabase(obedient.directory, read_only=True)
    names = [row[0] for row in connection.execute("SELECT name FROM command ORDER BY id")]
    connection.close()
    assert names == ["pause", "resume"]


@pytest.mark.parametrize("phase", [Phase.CHECKPOINTING, Phase.VALIDATING])
async def test_a_paused_run_goes_on_when_asked_while_it_does_something_else(engine: FakeEngine, phase: Phase) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training", "p Pause")
        await pilot.press("p")
        await until(pilot, lambda: engine.answer_commands() == ["pause"], "the pause")
        await shows(pilot, "paused", "p Resume")
        engine.enter(phase)
        await shows(pilot, phase, "p Resume")
        await pilot.press("p")
        await shows(pilot, "requested: resume")
        engine.enter(Phase.PAUSED)
        await until(pilot, lambda: engine.answer_commands() == ["resume"], "the command to go on")
        await shows(pilot, "training", "p Pause")
        engine.enter(phase)
        await shows(pilot, phase, "p Pause")


async def test_what_was_asked_shows_until_it_is_answered(engine: FakeEngine) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training", "C Checkpoint")
        await pilot.press("C")
        await shows(pilot, "requested: checkpoint")
        await until(pilot, lambda: engine.answer_commands(obeyed=False) == ["checkpoint"], "the command")
        await until(pilot, lambda: "not now" in told(pilot), "the refusal")
        await until(pilot, lambda: "requested:" not in text_of(pilot), "the end of the asking")


async def test_the_learning_rate_is_changed(obedient: FakeEngine) -> None:
    async with opened(obedient.directory, WIDE) as pilot:
        await shows(pilot, "learning rate  0.001")
        await pilot.press("e")
        await shows(pilot, "Current: 0.001")
        await pilot.press("x", "0", ".", "5")
        await shows(pilot, "enter sets 0.0005")
        await pilot.press("enter")
        await shows(pilot, "learning rate  0.0005")


@pytest.mark.parametrize("size", [(60, 16), SMALL, *more(WIDE)])
async def test_all_answers_of_a_question_are_visible(engine: FakeEngine, size: tuple[int, int]) -> None:
    async with opened(engine.directory, size) as pilot:
        await shows(pilot, "training")
        for key, answers in (("s", 3), ("q", 3)):
            await pilot.press(key)
            await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen), "the question")
            await pilot.pause()
            buttons = list(pilot.app.screen.query(Button))
            dialog = pilot.app.screen.query_one(".dialog").content_region
            assert len(buttons) == answers
            assert all(dialog.contains_region(button.region) for button in buttons)
            await shows(pilot, *(button.label.plain for button in buttons))
            await pilot.press("escape")
            await until(pilot, lambda: not isinstance(pilot.app.screen, QuestionScreen), "the run")


@pytest.mark.parametrize(("keys", "command"), [("ss", "Stop"), ("sn", "Stop without checkpoint")])
async def test_stopping_asks_how(obedient: FakeEngine, keys: str, command: str) -> None:
    obedient.train(20).save()
    async with opened(obedient.directory) as pilot:
        await shows(pilot, "training")
        await pilot.press(keys[0])
        await shows(pilot, "Stop training?")
        await pilot.press(keys[1])
        await shows(pilot, "Stopped after 20 steps", f"{command} requested by", "R Continue")
        await pilot.press("R")
        assert app_of(pilot).resumed == [(obedient.directory, None)]


async def test_a_finished_run_is_trained_longer(engine: FakeEngine) -> None:
    engine.train(400).save()
    engine.end()
    async with opened(engine.directory) as pilot:
        await shows(pilot, "Finished after 400 steps", "R Train longer")
        assert "R Continue" not in text_of(pilot)
        await pilot.press("R")
        await shows(pilot, "Trained: 4 epochs.", "enter trains 4 more, 8 epochs in total")
        await pilot.press("4")  # the text is selected, so that typing replaces it
        await shows(pilot, "must be at least 5 in total, e.g. +1")
        await pilot.press("enter", "backspace", *"+2")
        await shows(pilot, "enter trains 2 more, 6 epochs in total")
        await pilot.press("enter")
        assert app_of(pilot).resumed == [(engine.directory, 6)]
        await pilot.press("R", "escape")
        assert len(app_of(pilot).resumed) == 1


async def test_a_run_is_trained_longer_than_its_last_checkpoint(engine: FakeEngine) -> None:
    engine.train(180).save()
    engine.train(220)
    engine.end()
    async with opened(engine.directory) as pilot:
        await shows(pilot, "Finished after 400 steps", "R Train longer")
        await pilot.press("R")
        await shows(pilot, "Trained: 2 epochs of 4 planned.", "enter trains 4 more, 6 epochs in total")


async def test_why_a_run_cannot_be_continued_is_told(engine: FakeEngine) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        app_of(pilot).launch = LaunchState(problem="the data is gone")
        await until(pilot, lambda: "the data is gone" in told(pilot), "why not")


async def test_quitting_beside_a_live_run_asks_and_staying_is_the_default(engine: FakeEngine) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        await pilot.press("q")
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen), "the question")
        assert pilot.app.screen.query(Button).last().has_focus
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen is screen_of(pilot), "the run")
        assert app_of(pilot).went == []
        assert not engine.writer.commands()


async def test_leaving_can_stop_and_keep_the_work(engine: FakeEngine) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        await pilot.press("q", "s")
        await until(pilot, lambda: [command.name for command in engine.writer.commands()] == ["stop"], "the command")
        await until(pilot, lambda: not pilot.app.is_running or pilot.app._exit, "the end of the program")


async def test_who_would_stop_what_cannot_be_asked_stays_and_is_told(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RunError("the disk is full")

    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        monkeypatch.setattr("accel_tui.screens.run_actions.send_command", refuse)
        await pilot.press("q", "s")
        await until(pilot, lambda: "the disk is full" in told(pilot), "why not")
        assert pilot.app.is_running
        assert not pilot.app._exit


@pytest.mark.parametrize("key", ["d", "escape"])
async def test_a_live_run_is_left_at_once_and_how_to_come_back_is_said(engine: FakeEngine, key: str) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training", "q Quit", "? Help")
        await pilot.press(key)
        assert app_of(pilot).went == ["runs"]
        assert f"accel-tui watch {engine.directory.name}" in told(pilot)


@pytest.mark.parametrize(("key", "words"), [("q", "Quit accel-tui?"), ("s", "Stop training?")])
async def test_a_question_about_a_live_run_goes_away_with_its_end(engine: FakeEngine, key: str, words: str) -> None:
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        await pilot.press(key)
        await shows(pilot, words)
        engine.train(400)
        engine.end()
        await until(pilot, lambda: pilot.app.screen is screen_of(pilot), "the run")
        await shows(pilot, "Finished after 400 steps")
        assert "loss 0.0313" in told(pilot)
        assert app_of(pilot).went == []


async def test_two_dashboards_on_one_run_see_and_steer_the_same(obedient: FakeEngine) -> None:
    async with opened(obedient.directory) as one, opened(obedient.directory, WIDE) as other:
        await shows(one, "training")
        await shows(other, "training")
        await one.press("p")
        await shows(one, "paused")
        await shows(other, "paused")
        await shows(other, "pause at step 0")
        await other.press("p")
        await shows(one, "training")


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


async def test_a_dimmed_key_says_why_it_does_nothing(engine: FakeEngine) -> None:
    engine.train(20)
    async with opened(engine.directory) as pilot:
        await shows(pilot, "training")
        await pilot.press("E")
        await until(pilot, lambda: "no trained model yet" in told(pilot), "the reason")
        assert len(pilot.app.screen_stack) == 1
