from textual.app import App, ComposeResult
from textual.content import Content

from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_view import RunText


class Words(RunText):
    DEFAULT_CSS = "Words { height: auto; }"

    def build(self, state: RunState) -> Content:
        return Content("none" if state.info is None else "some")


class OneText(App[None]):
    def compose(self) -> ComposeResult:
        yield Words()


async def test_a_text_that_has_no_width_yet_is_told_all_the_same() -> None:
    """As on a screen that is left before it was laid out."""
    async with OneText().run_test(size=(40, 5)) as pilot:
        text = pilot.app.query_one(Words)
        text.styles.width = 0
        await pilot.pause()
        assert text.size.width == 0
        text.update("")
        text.update_view()
        assert str(text.content) == "none"
