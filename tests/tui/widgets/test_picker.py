"""A field with a list of choices."""

from rich.cells import cell_len
from textual.app import App, ComposeResult

from accel_tui.plan.form import FieldChoice
from accel_tui.widgets.plan.picker import Picker


class PickerApp(App[None]):
    """A field alone."""

    def __init__(self, value: str) -> None:
        super().__init__()
        self._value = value

    def compose(self) -> ComposeResult:
        """Compose it."""
        yield Picker(self._value, has_choices=True)

    @property
    def picker(self) -> Picker:
        """The field."""
        return self.query_one(Picker)

    def on_mount(self) -> None:
        """Offer two choices."""
        self.picker.choices = (FieldChoice("price"), FieldChoice("size"))
        self.picker.input.focus()


async def test_enter_takes_no_choice_in_place_of_a_text_that_was_cleared() -> None:
    for value, keys in (("", ("enter", "p", "backspace")), ("size", ("enter", "ctrl+u"))):
        app = PickerApp(value)
        async with app.run_test() as pilot:
            await pilot.press(*keys)
            app.picker.choices = (FieldChoice("price"), FieldChoice("size"), FieldChoice("rooms"))  # as a survey does
            await pilot.press("enter")
            assert app.picker.value == ""


async def test_enter_opens_the_list_at_its_first_choice() -> None:
    app = PickerApp("")
    async with app.run_test() as pilot:
        await pilot.press("enter", "enter")
        assert app.picker.value == "price"


async def test_notes_stand_below_each_other_beside_names_of_wide_characters() -> None:
    app = PickerApp("")
    async with app.run_test() as pilot:
        app.picker.choices = (FieldChoice("price", "a number"), FieldChoice("面積", "another"))
        await pilot.press("enter")
        shown = [str(option.prompt) for option in app.picker.listed.options]
        assert [cell_len(text[: text.index("a")]) for text in shown] == [8, 8]


async def test_enter_completes_what_was_typed() -> None:
    app = PickerApp("")
    async with app.run_test() as pilot:
        await pilot.press("enter", "s", "enter")
        assert app.picker.value == "size"
