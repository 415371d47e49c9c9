import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.events import Key

from accel_tui.widgets.line_input import LineInput


class Form(App[None]):
    def compose(self) -> ComposeResult:
        yield LineInput("10")


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("backspace", "backspace", "backspace", "6", "0"), "60"),
        (("5", "backspace", "6"), "106"),
        (("left", "7"), "170"),
        (("ctrl+u", "6", "0"), "60"),
    ],
)
async def test_keys_that_come_together_take_effect_in_their_order(keys: tuple[str, ...], value: str) -> None:
    app = Form()
    async with app.run_test() as pilot:
        app.query_one(LineInput).cursor_position = 2
        await pilot.pause()

        for key in keys:
            app.post_message(Key(key, key if len(key) == 1 else None))
        await pilot.pause()

        assert app.query_one(LineInput).value == value


@pytest.mark.parametrize("value", ["synthetic:32x32x3", "数据集数据集数据"])
async def test_a_long_text_is_shown_from_its_beginning_while_one_is_elsewhere(value: str) -> None:
    app = Form()
    async with app.run_test() as pilot:
        field = app.query_one(LineInput)
        field.styles.border = ("none", "black")
        field.styles.padding = 0
        field.styles.width = 10
        field.value = value
        field.cursor_position = len(value)
        app.set_focus(None)
        await pilot.pause()

        shown = field.render_line(0).text
        assert cell_len(shown) == 10
        assert shown.endswith("…")
        assert value.startswith(shown[:-1].rstrip())
