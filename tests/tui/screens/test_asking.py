"""Actions that await dialogs."""

import asyncio
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from accel_engine.errors import UsageError
from accel_tui.screens.asking import CANCEL, Answer, AskingScreen, QuestionScreen, ask_user, awaiting
from tui.stand_ins import until

YES = Answer("yes", "Yes", "y")


class TwiceAskingScreen(AskingScreen):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "ask_twice"), Binding("f", "fail")]

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str | None] = []

    @awaiting
    async def action_ask_twice(self) -> None:
        for number in range(2):
            self.answers.append(await ask_user(self, QuestionScreen(f"Really {number}?", "", (YES, CANCEL))))

    @awaiting
    async def action_ask(self) -> None:
        self.answers.append(await self.ask(QuestionScreen("Really?", "", (YES, CANCEL))))

    @awaiting
    async def action_fail(self) -> None:
        try:
            await asyncio.to_thread(self.refuse)
        except UsageError as error:
            self.answers.append(str(error))

    def refuse(self) -> None:
        raise UsageError("not now")


async def test_a_question_is_open_when_the_action_returns_and_others_follow_its_answer() -> None:
    app: App[None] = App()
    async with app.run_test() as pilot:
        screen = TwiceAskingScreen()
        await app.push_screen(screen)
        screen.action_ask_twice()
        assert isinstance(app.screen, QuestionScreen), "the key that is typed next is for it"
        await pilot.press("y", "escape")
        await until(pilot, lambda: screen.answers == ["yes", None], "both answers")


async def test_what_is_raised_where_it_waits_is_raised_in_the_action() -> None:
    app: App[None] = App()
    async with app.run_test() as pilot:
        screen = TwiceAskingScreen()
        await app.push_screen(screen)
        await pilot.press("f")
        await until(pilot, lambda: screen.answers == ["not now"], "the reason")


async def test_a_withdrawn_question_closes_once_nothing_is_above_it() -> None:
    app: App[None] = App()
    async with app.run_test() as pilot:
        screen = TwiceAskingScreen()
        await app.push_screen(screen)
        screen.action_ask()
        question = app.screen
        await app.push_screen(QuestionScreen("And this?", "", (YES, CANCEL)))
        screen.withdraw_question()
        assert app.screen is not question, "what is above it stays"
        await pilot.press("y")
        await until(pilot, lambda: screen.answers == [None], "the end of the action")
        assert app.screen is screen


async def test_a_screen_that_is_closed_waits_no_longer() -> None:
    app: App[None] = App()
    async with app.run_test() as pilot:
        screen = TwiceAskingScreen()
        await app.push_screen(screen)
        screen.action_ask_twice()
        question = app.screen
        await screen.remove()
        question.dismiss("yes")
        await pilot.pause()
        assert screen.answers == []


async def test_what_would_ask_while_the_app_closes_is_silent() -> None:
    class ClosingScreen(TwiceAskingScreen):
        def on_unmount(self) -> None:
            self.action_ask_twice()

    app: App[None] = App()
    async with app.run_test():
        screen = ClosingScreen()
        await app.push_screen(screen)
    assert not app.screen_stack
    assert screen.answers == []
