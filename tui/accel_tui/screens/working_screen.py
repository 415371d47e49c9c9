"""Base of screens whose work ends when they are left: they ask first."""

from accel_tui.screens.asking import AskingScreen, awaiting
from accel_tui.screens.question_screen import Answer, QuestionScreen

KEEP = Answer("keep", "Keep going", "escape")
END = Answer("end", "End it", "e", is_destructive=True)


class WorkingScreen(AskingScreen):
    """A screen that works in threads and engine processes until it is left."""

    @property
    def work_in_progress(self) -> str:
        """What would end, such as ``the race``; empty while the screen does not work."""
        raise NotImplementedError

    @property
    def work_detail(self) -> str:
        """What ending the work means, in a sentence."""
        return "What is not done yet is lost."

    async def may_end(self) -> bool:
        """Ask whether to end the work, if the screen works; returns whether to do what ends it."""
        question = QuestionScreen(f"End {self.work_in_progress}?", self.work_detail, (KEEP, END))
        return not self.work_in_progress or await self.ask(question) == END.id

    @awaiting
    async def action_back(self) -> None:
        """Go back to the screen below; asks first while this one works."""
        if await self.may_end():
            self.go_back()

    @awaiting
    async def action_quit(self) -> None:
        """Quit; asks first while the screen works."""
        if await self.may_end():
            self.app.exit()
