"""Base of screens whose work ends when they are left: they ask first."""

from collections.abc import Callable

from textual.screen import Screen

from accel_tui.screens.question_screen import Answer, QuestionScreen

KEEP = Answer("keep", "Keep going", "escape")
END = Answer("end", "End it", "e", is_destructive=True)


class WorkingScreen(Screen[None]):
    """A screen that works in threads and engine processes until it is left."""

    _question: QuestionScreen | None = None

    @property
    def work_in_progress(self) -> str:
        """What would end, such as ``the race``; empty while the screen does not work."""
        raise NotImplementedError

    @property
    def work_detail(self) -> str:
        """What ending the work means, in a sentence."""
        return "What is not done yet is lost."

    def ask_to_end(self, end: Callable[[], object]) -> None:
        """Ask, if the screen works, then do what ends the work."""
        if not self.work_in_progress:
            end()
            return

        def answered(answer: str | None) -> None:
            self._question = None
            if answer == END.id:
                end()

        self._question = QuestionScreen(f"End {self.work_in_progress}?", self.work_detail, (KEEP, END))
        self.app.push_screen(self._question, answered)

    def close_question(self) -> None:
        """Close the question whether to end the work, which has ended by itself."""
        if self._question is not None and self.app.screen is self._question:
            self._question.dismiss(None)

    def leave(self) -> None:
        """Go back to the screen below, which ends the work."""
        self.app.pop_screen()

    def action_back(self) -> None:
        """Go back to the screen below; asks first while this one works."""
        self.ask_to_end(self.leave)

    async def action_quit(self) -> None:
        """Quit; asks first while the screen works."""
        self.ask_to_end(self.app.exit)
