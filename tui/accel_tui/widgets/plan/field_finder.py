"""Finds a field of the form by typing."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.getters import query_one
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from accel_engine.plan import GROUPS, SPECS, WORDS
from accel_tui.formatting.text import fit
from accel_tui.plan import field_labels
from accel_tui.plan.form import needs
from accel_tui.plan.form_groups import ORDER
from accel_tui.widgets.line_input import LineInput

_LABEL, _VALUE = 16, 16
"""Widths of a label and of a value, in cells."""


class FieldFinder(Widget):
    """A line to type in, and the matching fields with their values and descriptions below it."""

    DEFAULT_CSS = """
    FieldFinder {
        display: none;
        height: 1fr;
        padding: 0 1;
        &.-open { display: block; }

        Input, Input:focus { height: 1; border: none; padding: 0; background: $surface; }
        OptionList {
            height: 1fr;
            padding: 0;
            background: transparent;
            scrollbar-size-vertical: 1;
        }
        OptionList > .option-list--option-highlighted {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """

    BINDING_GROUP_TITLE = "While finding a field"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move('down')", id="finder.down", tooltip="Next field"),
        Binding("up", "move('up')", id="finder.up", tooltip="Previous field"),
        Binding("pagedown", "move('page_down')", id="finder.page-down", tooltip="A page of fields down"),
        Binding("pageup", "move('page_up')", id="finder.page-up", tooltip="A page of fields up"),
        Binding("enter", "choose", "Go to field", id="finder.choose", tooltip="Go to the selected field"),
        Binding("escape", "close", "Close", id="finder.close", tooltip="Close the list of fields"),
    ]

    @dataclass
    class Chosen(Message):
        """A field was chosen, or none."""

        field: str
        """The field; empty for none."""

    class Selected(Message):
        """Another field is selected."""

    listed = query_one(OptionList)

    def __init__(self) -> None:
        super().__init__()
        self._chosen_by: str | None = None
        """The typed text when a field was chosen; ``None`` before that."""
        self._values: Mapping[str, tuple[str, bool]] = {}

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return self.has_class("-open")

    def open(self, values: Mapping[str, tuple[str, bool]]) -> None:
        """Show all fields, and take the focus.

        Args:
            values: The text of each field that fits the plan, and whether it differs from the default.
        """
        self._values = values
        if not self.query(OptionList):  # the form's first frame does not need it
            listed = OptionList(compact=True)
            listed.can_focus = False
            self.mount(LineInput(placeholder="find a field, e.g. clip, patience, lr", id="wanted"), listed)
        self.add_class("-open")
        wanted = self.query_one("#wanted", LineInput)
        wanted.value, self._chosen_by = "", None
        self.screen.set_focus(wanted)  # now, as the next keys are for it
        self._list("")

    @property
    def selected(self) -> str:
        """The selected field; empty if there is none."""
        option = self.listed.highlighted_option if self.query(OptionList) else None
        return option.id if option is not None and option.id and not option.disabled else ""

    def close(self) -> str:
        """Hide it; returns the text typed after a field was chosen, for that field."""
        self.remove_class("-open")
        if self._chosen_by is None:
            return ""
        return self.query_one("#wanted", LineInput).value.removeprefix(self._chosen_by)

    def action_move(self, how: str) -> None:
        getattr(self.listed, f"action_{'cursor_' if how in ('down', 'up') else ''}{how}")()

    def action_choose(self) -> None:
        if self.selected:
            self._chosen_by = self.query_one("#wanted", LineInput).value
            self.post_message(self.Chosen(self.selected))

    def action_close(self) -> None:
        self.post_message(self.Chosen(""))

    @on(Input.Changed, "#wanted")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._list(event.value)

    @on(Input.Submitted, "#wanted")
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_choose()

    @on(OptionList.OptionHighlighted)
    def _moved(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.post_message(self.Selected())

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(self.Chosen(event.option.id or ""))

    def _list(self, text: str) -> None:
        found = find_fields(text, self._values)
        options: list[Option] = []
        if not text:  # all of them, by group
            groups = list(GROUPS)
            found = tuple(sorted(found, key=lambda each: (not each.is_relevant, groups.index(_group(each, text)))))
        for before, field in zip((None, *found), found, strict=False):
            title = _group(field, text) if field.is_relevant else ""
            if title and (before is None or _group(before, text) != title):
                options.append(Option(Content.styled(title, "$primary bold"), disabled=True))
            options.append(Option(self._row(field), id=field.name, disabled=not field.is_relevant))
        nothing = Option(Content.styled(f" no field matches {text!r}", "$text-disabled"), disabled=True)
        self.listed.set_options(options or [nothing])
        first = next((index for index, option in enumerate(options) if not option.disabled), None)
        self.listed.highlighted = first
        self.post_message(self.Selected())

    def _row(self, found: "FoundField") -> Content:
        text, is_changed = self._values.get(found.name, ("", False))
        label = f"{field_labels.label(found.name):<{_LABEL}}"
        if not found.is_relevant:
            row = Content.styled(f"  {label}{'':<{_VALUE}}  {found.note}", "$text-disabled")
        else:
            row = Content.assemble(
                ("• " if is_changed else "  ", "$accent bold"),
                (label, ""),
                (f"{fit(text, _VALUE)}  ", "$foreground" if is_changed else "$text-muted"),
                (found.note, "$text-muted"),
            )
        return row.truncate(max(self.app.size.width - 4, 20), ellipsis=True)


@dataclass(frozen=True, slots=True)
class FoundField:
    """A field that was found."""

    name: str
    """The field."""
    note: str
    """Its description; for an irrelevant field, what it needs."""
    is_relevant: bool = True
    """Whether the form shows it."""


def find_fields(text: str, relevant: Container[str]) -> tuple[FoundField, ...]:
    """Find the fields that match all words of a text, best first; irrelevant ones come last.

    Args:
        text: What is typed.
        relevant: The fields that fit the plan.
    """
    words = text.lower().replace("_", " ").replace("-", " ").split()
    ranked = [(rank, name) for name in ORDER if (rank := _rank(name, words)) is not None]
    ordered = [name for _, name in sorted(ranked, key=lambda pair: (pair[1] not in relevant, pair[0]))]
    return tuple(
        FoundField(name, SPECS[name].doc) if name in relevant else FoundField(name, needs(name), is_relevant=False)
        for name in ordered
    )


def _group(found: FoundField, text: str) -> str:
    """The group that a field is listed under; empty while text is typed, as the best match is first then."""
    return "" if text else WORDS[found.name].group


def _rank(name: str, words: list[str]) -> int | None:
    """How well a field matches, 0 for best, parts of words last; ``None`` if a word does not match."""
    texts = tuple(f" {text}" for text in _texts(name))
    starts, anywhere = enumerate(texts), enumerate(texts, len(texts))
    places = (*((rank, text, " ") for rank, text in starts), *((rank, text, "") for rank, text in anywhere))
    ranks = [next((rank for rank, text, before in places if before + word in text), None) for word in words]
    known = [rank for rank in ranks if rank is not None]
    return sum(known) if len(known) == len(ranks) else None


def _texts(name: str) -> Iterator[str]:
    """The texts of a field in which words are searched for, the most important first."""
    yield f"{field_labels.label(name)} {name.replace('_', ' ')}".lower()
    synonyms = " ".join(WORDS[name].synonyms).lower()
    yield f"{synonyms} {synonyms.replace('_', ' ')}"
    yield WORDS[name].group.lower()
    yield SPECS[name].doc.lower()
