"""A line of text that offers what it can be: typing filters, arrows and enter choose."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from accel_tui.plan.form import FieldChoice
from accel_tui.widgets.line_input import LineInput


class Picker(Widget):
    """An input of one line with a list of choices under it while it is open.

    Any text can be typed; whether it is right is for the owner to say. A choice that is not possible
    is listed, greyed, with its reason.

    Args:
        value: The text to begin with.
        offers: Whether there will be something to choose from.
    """

    DEFAULT_CSS = """
    Picker {
        height: 1;
        layout: horizontal;
        background: $surface;
        color: $text-disabled;
        text-align: right;

        Input, Input:focus { width: 1fr; height: 1; border: none; padding: 0; background: $surface; }
        Input:focus { background-tint: $foreground 8%; }
        &.-offers Input { margin: 0 2 0 0; }

        OptionList {
            display: none;
            overlay: screen;
            constrain: inside inside;
            offset: 0 1;
            width: auto;
            min-width: 24;
            max-width: 100vw;
            height: auto;
            max-height: 11;
            padding: 0;
            background: $surface;
            scrollbar-size-vertical: 1;
        }
        &.-open OptionList { display: block; }
        OptionList > .option-list--option-highlighted {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """

    BINDING_GROUP_TITLE = "In a field"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", "Next", id="picker.down", show=False, tooltip="The next choice, or field"),
        Binding("up", "move(-1)", "Previous", id="picker.up", show=False, tooltip="The previous choice, or field"),
        Binding("pagedown", "move(8)", id="picker.page_down", show=False, tooltip="Eight choices on"),
        Binding("pageup", "move(-8)", id="picker.page_up", show=False, tooltip="Eight choices back"),
        Binding(
            "enter",
            "open_or_take",
            id="picker.enter",
            show=False,
            tooltip="Open the list of choices, or take the choice",
        ),
        Binding("tab", "take_and_go", id="picker.take", show=False, tooltip="Take the choice and go on"),
        Binding("escape", "close", "Close", id="picker.close", show=False, tooltip="Close the list"),
    ]

    choices: reactive[tuple[FieldChoice, ...]] = reactive(())
    """What is offered; nothing for a plain input."""

    is_open: reactive[bool] = reactive(False, toggle_class="-open", init=False)
    """Whether the list is shown."""

    @dataclass
    class Changed(Message):
        """The text is another."""

        picker: "Picker"
        value: str

        @property
        def control(self) -> "Picker":
            """The picker that it comes from."""
            return self.picker

    @dataclass
    class Opened(Message):
        """The list is shown, or no more."""

        picker: "Picker"

        @property
        def control(self) -> "Picker":
            """The picker that it comes from."""
            return self.picker

    listed = query_one(OptionList)

    def __init__(
        self,
        value: str,
        *,
        offers: bool,
        id: str | None = None,  # noqa: A002 (Textual's own name)
    ) -> None:
        super().__init__(id=id, classes="-offers" if offers else None)
        self.input = LineInput(value, validate_on=())  # whether it is right is for the owner to say
        self._offers = offers
        self._before = value
        self._told = value

    def compose(self) -> ComposeResult:
        """The input."""
        yield self.input

    def render(self) -> Content:
        """A mark beside the input, where there is a list."""
        # Not ":focus-within": Textual works out the styles of all that is inside anew, at each step through the form.
        return Content.styled("▾ " if self._offers else "", "$accent" if self.has_focus_within else "")

    @property
    def value(self) -> str:
        """The text."""
        return self.input.value

    @value.setter
    def value(self, text: str) -> None:
        self.input.value = text

    @property
    def placeholder(self) -> str:
        """What is shown where there is no text."""
        return str(self.input.placeholder)

    @placeholder.setter
    def placeholder(self, text: str) -> None:
        self.input.placeholder = text

    def watch_choices(self) -> None:
        """Offer the new ones, if the list is shown; the cursor stays on its choice."""
        if self.is_open:
            option = self.listed.highlighted_option
            typed = self.value != self._before  # else all are listed
            self._offer(self._matching(self.value) if typed else self.choices, option.id if option else None)

    def watch_is_open(self) -> None:
        """Say so: keys mean something else now."""
        self.post_message(self.Opened(self))
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Some keys are the list's while it is open, and the form's otherwise."""
        far = action == "move" and parameters not in ((1,), (-1,))
        return self.is_open if far or action in ("close", "take_and_go") else True

    def action_move(self, by: int) -> None:
        """Move in the list, or to another field."""
        if self.is_open:
            self._move_in_list(by)
        elif by > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def action_close(self) -> None:
        """Close the list and put the text back that was there before."""
        self.is_open = False
        self.value = self._before

    def action_take_and_go(self) -> None:
        """Take what is highlighted, and go to the next field."""
        self._take()
        self.screen.focus_next()

    def action_open_or_take(self) -> None:
        """Open the list of all choices; take the highlighted one if it is open; where there is none, go on."""
        if self.is_open:
            self._take()
        elif self.choices:
            self._before = self.value
            self._offer(self.choices)
        else:
            self.screen.focus_next()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_open_or_take()

    @on(Input.Changed)
    def _edited(self, event: Input.Changed) -> None:
        event.stop()
        if event.value == self._told:
            return  # an input also says with what it begins
        self._told = event.value
        self.post_message(self.Changed(self, event.value))
        if self.input.has_focus and self.choices and event.value != self._before:
            self._offer(self._matching(event.value))

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._take()

    def on_click(self) -> None:
        """Open the list by mouse, the text chosen, so that typing replaces it; where there is none, only go there."""
        was_there = self.input.has_focus and self.is_open
        self.input.focus()
        if self.choices and not was_there:
            if not self.is_open:
                self.action_open_or_take()
            self.input.select_all()

    def on_descendant_blur(self) -> None:
        """A list without its input in use is in the way."""
        self.is_open = False
        self.refresh()

    def on_descendant_focus(self) -> None:
        """Remember the text, so that it can be put back."""
        self._before = self.value
        self.refresh()

    def _matching(self, text: str) -> tuple[FieldChoice, ...]:
        wanted = text.strip().lower()
        found = [choice for choice in self.choices if wanted in choice.value.lower()]
        return tuple(sorted(found, key=lambda choice: not choice.value.lower().startswith(wanted)))

    def _offer(self, choices: Sequence[FieldChoice], at: str | None = None) -> None:
        """Open the list on these choices, at an option's id, or the present one, or the first that is possible."""
        width = max((len(choice.value or "auto") for choice in choices), default=0)
        room = self.app.size.width - 4
        options = [
            Option(_row(choice, width, room), id=f"={choice.value}", disabled=not choice.possible) for choice in choices
        ]
        if not self.query(OptionList):  # which most fields never need
            listed = OptionList(compact=True)
            listed.can_focus = False
            self.mount(listed, before=self.input)  # after it, the list would begin where the field ends
        self.listed.set_options(options)
        ids = [option.id for option in options]
        at = at if at in ids else f"={self.value}"
        possible = [index for index, choice in enumerate(choices) if choice.possible]
        if at in ids:
            self.listed.highlighted = ids.index(at)
        else:
            self.listed.highlighted = possible[0] if possible else None
        self.is_open = bool(options)

    def _move_in_list(self, by: int) -> None:
        """Skip what is not possible; single steps go round, longer ones stop at the ends."""
        possible = [index for index, option in enumerate(self.listed.options) if not option.disabled]
        if possible:
            cursor = self.listed.highlighted
            place = possible.index(cursor) + by if cursor in possible else 0
            last = len(possible) - 1
            self.listed.highlighted = possible[place % len(possible) if abs(by) == 1 else min(max(place, 0), last)]

    def _take(self) -> None:
        option = self.listed.highlighted_option
        self.is_open = False
        if option is not None and option.id is not None and not option.disabled:
            self._before = option.id.removeprefix("=")
            self.value = self._before


def _row(choice: FieldChoice, width: int, room: int) -> Content:
    """A choice with its note, which wraps beside the name.

    Args:
        choice: The choice.
        width: Cells of the longest name.
        room: Cells of the whole row.
    """
    name = choice.value or "auto"
    styles = ("", "$text-muted") if choice.possible else ("$text-disabled", "$text-disabled italic")
    indent = "\n" + " " * (width + 3)
    note = indent.join(textwrap.wrap(choice.note, max(room - width - 4, 20)))
    return Content.assemble((f" {name:<{width}}  ", styles[0]), (note + " ", styles[1]))
