"""An input with a list of choices, and the input itself, in which letters are keys until it is edited."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Blur, Key, Paste
from textual.getters import query_one
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from accel_tui.formatting.text import fit, shorten
from accel_tui.plan.form import FieldChoice
from accel_tui.widgets.line_input import LineInput


class FieldInput(LineInput):
    """The input of a field. With the focus alone, letters are keys of the screen; ``enter`` or a digit edits it."""

    DEFAULT_CSS = """
    FieldInput, FieldInput:focus {
        width: 1fr;
        height: 1;
        border: none;
        padding: 0;
        background: $surface;
        &:focus { background: $block-cursor-background; color: $block-cursor-foreground; background-tint: transparent; }
        &:focus.-editing { background: $surface; color: $foreground; background-tint: $foreground 8%; }
        &:nocolor:focus { text-style: reverse; }
        &:nocolor:focus.-editing { text-style: none; }
    }
    """

    is_editing: reactive[bool] = reactive(False, toggle_class="-editing", init=False)
    """Whether letters are text."""

    class Entered(Message):
        """Enter was pressed while it was not edited."""

    def __init__(self, value: str) -> None:
        super().__init__(value, validate_on=(), select_on_focus=False)  # validated by the owner
        self.cursor_blink = False

    def begin(self) -> None:
        """Edit the text, all of which is selected."""
        if not self.is_editing:
            self.is_editing = True
            self.select_all()

    def watch_is_editing(self) -> None:
        """Other keys are active."""
        self.cursor_blink = self.is_editing
        self.refresh_bindings()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return self.is_editing and super().check_consume_key(key, character)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of text edit it only once it is edited."""
        return self.is_editing and super().check_action(action, parameters)

    def render_line(self, y: int) -> Strip:
        if y or self.is_editing or not self.has_focus:
            return super().render_line(y)
        width = self.size.width
        return Strip(
            [Segment(shorten(self.value or str(self.placeholder), width), self.rich_style)]
        ).extend_cell_length(width, self.rich_style)

    async def _on_key(self, event: Key) -> None:
        if not self.is_editing and event.character and event.character.isdigit():
            self.begin()
        if self.is_editing:
            await super()._on_key(event)
            return
        event.prevent_default()  # Textual would insert a letter
        if event.key == "enter":  # at once, as the next keys are for the text
            event.stop()
            self.post_message(self.Entered())
            self.begin()

    def _on_paste(self, event: Paste) -> None:
        self.begin()
        super()._on_paste(event)

    def _on_blur(self, event: Blur) -> None:
        self.is_editing = False
        super()._on_blur(event)


class Picker(Widget):
    """A single-line input with a list of choices below it while open.

    Any text can be typed; the owner validates it. Impossible choices are listed in grey, with the reason.

    Args:
        value: Initial text.
        has_choices: Whether there will be choices.
        is_list: Whether the text is a list of choices, separated by commas.
        completes: Whether the owner completes the text at the key for that.
    """

    DEFAULT_CSS = """
    Picker {
        height: 1;
        layout: horizontal;
        background: $surface;
        color: $text-disabled;
        text-align: right;

        &.-offers Input { margin: 0 2 0 0; }

        OptionList {
            display: none;
            overlay: screen;
            constrain: inside inside;
            offset: 0 1;
            width: auto;
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
        Binding("down", "move(1)", id="picker.down", tooltip="Next choice, or next field"),
        Binding("up", "move(-1)", id="picker.up", tooltip="Previous choice, or previous field"),
        Binding("pagedown", "move(8)", id="picker.page-down", tooltip="Eight choices down"),
        Binding("pageup", "move(-8)", id="picker.page-up", tooltip="Eight choices up"),
        Binding("enter", "open_or_accept", id="picker.enter", tooltip="List the choices, or accept"),
        Binding("tab", "accept_and_advance", id="picker.accept", tooltip="Accept the text, and complete a file's name"),
        Binding("escape", "close", id="picker.close", tooltip="Leave the text; an open list puts it back"),
    ]

    choices: reactive[tuple[FieldChoice, ...]] = reactive(())
    """The choices; empty for a plain input."""

    is_open: reactive[bool] = reactive(False, toggle_class="-open", init=False)
    """Whether the list is open."""

    @dataclass
    class Changed(Message):
        """The text has changed."""

        picker: "Picker"
        value: str

    class Opened(Message):
        """The list was opened or closed, or the text is edited or no longer."""

    class Chosen(Message):
        """A choice of the list was entered that is the whole text."""

    @dataclass
    class CompletionWanted(Message):
        """The key was pressed that completes the text."""

        picker: "Picker"

    @dataclass
    class Completed(Message):
        """The text is complete: the focus is to go to the next field, which the text may show only now."""

        picker: "Picker"
        """The sender."""
        is_entered: bool
        """Whether by enter, not by a key that goes to the next field."""

    listed = query_one(OptionList)

    def __init__(
        self,
        value: str,
        *,
        has_choices: bool,
        is_list: bool = False,
        completes: bool = False,
        id: str | None = None,  # noqa: A002 (Textual's own name)
    ) -> None:
        super().__init__(id=id, classes="-offers" if has_choices else None)
        self.input = FieldInput(value)
        self._completes = completes
        self._has_choices = has_choices
        self._is_list = is_list
        self._value_before = value
        self._last_value = value
        self.is_filter: Callable[[], bool] = lambda: False
        """Whether the text only filters a list of the owner's, so that it is put back as by an open list."""

    def compose(self) -> ComposeResult:
        yield self.input

    def render(self) -> Content:
        """An arrow next to the input if there is a list."""
        # Not ":focus-within", for which Textual restyles all children at every change of focus.
        return Content.styled("▾ " if self._has_choices else "", "$accent" if self.has_focus_within else "")

    @property
    def value(self) -> str:
        """The text."""
        return self.input.value

    @value.setter
    def value(self, text: str) -> None:
        self._value_before = self.input.value = text

    @property
    def placeholder(self) -> str:
        return str(self.input.placeholder)

    @placeholder.setter
    def placeholder(self, text: str) -> None:
        self.input.placeholder = text

    def watch_choices(self) -> None:
        """Update an open list; the cursor stays on its choice."""
        if self.is_open:
            option = self.listed.highlighted_option
            typed = self.value != self._value_before  # else all are listed
            choices = self._matching(self.value) if typed else self.choices
            self._open_list(choices, option.id if option else None, is_typed=option is None)

    def watch_is_open(self) -> None:
        """Post :class:`Opened`, and update the keys."""
        self.post_message(self.Opened())
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Some keys belong to the list while it is open, some to the text while it is edited, and else to the form."""
        if action == "move":
            return self.is_open
        return self.input.is_editing if action in ("close", "accept_and_advance") else True

    def action_move(self, by: int) -> None:
        self._move_in_list(by)

    def action_close(self) -> None:
        """Put the text back that an open list has changed, and edit it no longer."""
        if self.is_open or self.is_filter():
            self.is_open = False
            self.value = self._value_before
        self.finish()

    def action_accept_and_advance(self) -> None:
        """Accept the highlighted choice, and focus the next field; or complete the text."""
        if self._completes:
            self.post_message(self.CompletionWanted(self))
            return
        self._accept()
        self.post_message(self.Completed(self, is_entered=False))

    def action_open_or_accept(self) -> None:
        """Accept the highlighted choice, or what was typed and focus the next field; else open the list, if any."""
        if self.is_open:
            self._accept()
            if not self._is_list:  # of which more is typed
                self.finish()
                self.post_message(self.Chosen())
        elif self.choices and self.value == self._value_before:
            self._open_list(self.choices)
        else:
            self.post_message(self.Completed(self, is_entered=True))

    def edit(self) -> None:
        """Focus the input and edit its text."""
        self.screen.set_focus(self.input)  # now, as the next keys are for it
        self.input.begin()

    def finish(self) -> None:
        """Edit the text no longer; letters are keys again."""
        self.is_open = False
        self._value_before = self.value
        self.input.is_editing = False
        self.post_message(self.Opened())

    @on(FieldInput.Entered)
    def _begun(self, event: FieldInput.Entered) -> None:
        event.stop()
        self.post_message(self.Opened())
        if self.choices and not self.is_open and self.value == self._value_before:
            self._open_list(self.choices)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_open_or_accept()

    @on(Input.Changed)
    def _edited(self, event: Input.Changed) -> None:
        event.stop()
        if event.value == self._last_value:
            return  # an input also posts its initial value
        self._last_value = event.value
        self.post_message(self.Changed(self, event.value))
        if self.input.has_focus and self.choices and (self.is_open or event.value != self._value_before):
            self._open_list(self._matching(event.value), is_typed=True)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._accept()

    def on_click(self) -> None:
        """Open the list and select the text, so that typing replaces it; without choices, only focus."""
        was_there = self.input.has_focus and self.is_open
        self.edit()
        if self.choices and not was_there:
            if not self.is_open:
                self._value_before = self.value
                self._open_list(self.choices)
            self.input.select_all()

    def on_descendant_blur(self) -> None:
        self.is_open = False
        self.refresh()

    def on_descendant_focus(self) -> None:
        """Remember the text, so that it can be restored."""
        self._value_before = self.value
        self.refresh()

    def _matching(self, text: str) -> tuple[FieldChoice, ...]:
        wanted = self._last_of(text).strip().lower()
        found = [choice for choice in self.choices if wanted in choice.value.lower()]
        return tuple(sorted(found, key=lambda choice: not choice.value.lower().startswith(wanted)))

    def _last_of(self, text: str) -> str:
        """The last item of a list; any other text unchanged."""
        return text.rpartition(",")[2] if self._is_list else text

    def _open_list(self, choices: Sequence[FieldChoice], at: str | None = None, *, is_typed: bool = False) -> None:
        """Open the list at an option's id, else at the current value, else at the first possible choice.

        Args:
            choices: What to list.
            at: An option's id.
            is_typed: Whether the text was just typed: if it is empty, enter takes no choice in its place.
        """
        width = max((cell_len(choice.value or "auto") for choice in choices), default=0)
        room = self.app.size.width - 4
        options = [
            Option(_row(choice, width, room), id=f"={choice.value}", disabled=not choice.possible) for choice in choices
        ]
        if not self.query(OptionList):  # most fields never need one
            listed = OptionList(compact=True)
            listed.can_focus = False
            self.mount(listed, before=self.input)  # after the input, the list would begin where the field ends
        self.listed.set_options(options)
        self.listed.styles.min_width = self._list_width(options)
        ids = [option.id for option in options]
        at = at if at in ids else f"={self._last_of(self.value)}"
        possible = [index for index, choice in enumerate(choices) if choice.possible]
        if at in ids:
            self.listed.highlighted = ids.index(at)
        elif is_typed and not self._last_of(self.value).strip():
            self.listed.highlighted = None
        else:
            self.listed.highlighted = possible[0] if possible else None
        self.is_open = bool(options)

    def _list_width(self, options: Sequence[Option]) -> int:
        """The field's; a wider list reaches the end of the row or dialog, or has the whole width: no word is cut."""
        prompts = [line for option in options if isinstance(option.prompt, Content) for line in option.prompt.split()]
        longest = max((line.cell_length for line in prompts), default=0) + 1  # for a scrollbar
        if longest <= self.region.width:
            return self.region.width
        classes = ("columns", "dialog")
        around = (each for each in self.ancestors if isinstance(each, Widget) and any(map(each.has_class, classes)))
        beside = next(around, self.screen).region.right - self.region.x
        return beside if longest <= beside else self.screen.region.width

    def _move_in_list(self, by: int) -> None:
        """Skip impossible choices; single steps wrap around, longer ones stop at the ends."""
        possible = [index for index, option in enumerate(self.listed.options) if not option.disabled]
        if possible:
            cursor = self.listed.highlighted
            place = possible.index(cursor) + by if cursor in possible else 0
            last = len(possible) - 1
            self.listed.highlighted = possible[place % len(possible) if abs(by) == 1 else min(max(place, 0), last)]

    def _accept(self) -> None:
        option = self.listed.highlighted_option
        self.is_open = False
        if option is not None and option.id is not None and not option.disabled:
            self.value = self._with_choice(option.id.removeprefix("="))
            self.input.cursor_position = len(self.value)  # more of a list is typed after it

    def _with_choice(self, choice: str) -> str:
        """The text with a choice: in a list, it completes what was typed, or is added."""
        if not self._is_list:
            return choice
        typed = self.value != self._value_before
        items = [item for item in self.value.split(",") if item]
        if typed and items and not self.value.endswith(","):
            items.pop()
        return ",".join(dict.fromkeys((*items, choice)))


def _row(choice: FieldChoice, width: int, room: int) -> Content:
    """A choice with its note, which wraps next to the name.

    Args:
        choice: The choice.
        width: Cells of the longest name.
        room: Cells of the row.
    """
    name = choice.value or "auto"
    styles = ("", "$text-muted") if choice.possible else ("$text-disabled", "$text-disabled italic")
    indent = "\n" + " " * (width + 3)
    note = indent.join(textwrap.wrap(choice.note, max(room - width - 4, 20)))
    return Content.assemble((f" {fit(name, width)}  ", styles[0]), (note + " ", styles[1]))
