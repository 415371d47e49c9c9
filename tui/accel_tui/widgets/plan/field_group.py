"""A group of fields that is folded to a line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from accel_tui.plan.form_groups import GroupSummary
from accel_tui.widgets.plan.field import Field

_TITLE = 16
"""Cells of the title, as of a field's label."""


class GroupHeader(Widget, can_focus=True):
    """The line of a group: its title, and what differs from the defaults in it.

    Args:
        title: The title.
    """

    DEFAULT_CSS = """
    GroupHeader {
        height: 1;
        color: $text-muted;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        &:hover { background: $foreground 5%; }
        &:focus { background: $foreground 12%; }
        &:nocolor:focus { text-style: reverse; }
    }
    """

    BINDING_GROUP_TITLE = "On a group"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter,space", "open_or_close", "Open/close", id="group.toggle", tooltip="Show or hide the group's fields"
        ),
        Binding("right", "open", id="group.open", tooltip="Show the group's fields"),
        Binding("left", "close", id="group.close", tooltip="Hide the group's fields"),
        # The form, which scrolls by them, comes before the keys of the screen.
        Binding("down", "app.focus_next", id="group.down", show=False, tooltip="Next field"),
        Binding("up", "app.focus_previous", id="group.up", show=False, tooltip="Previous field"),
        Binding("f7", "reset", "Default", id="field.reset", tooltip="Reset the group's fields to their defaults"),
    ]

    is_open: reactive[bool] = reactive(False)
    """Whether the group's fields are shown."""

    summary: reactive[GroupSummary] = reactive(GroupSummary())
    """What is shown after the title of a folded group."""

    @dataclass
    class Toggled(Message):
        """The group is to be opened or closed."""

        header: "GroupHeader"
        is_open: bool
        """Whether it is to be open."""

    @dataclass
    class Reset(Message):
        """The group's fields are to get their defaults."""

        title: str

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title

    def render(self) -> Content:
        """Arrow, title and summary."""
        summary = self.summary
        title = "$accent" if self.has_focus else "$foreground" if summary.is_changed or self.is_open else ""
        shown = "" if self.is_open else summary.text
        style = "$text-error" if summary.is_wrong else "$foreground" if summary.is_changed else "$text-disabled"
        return Content.assemble(
            ("▾ " if self.is_open else "▸ ", "$accent" if self.has_focus or summary.is_changed else "$text-disabled"),
            (f"{self.title:<{_TITLE}}", f"{title} bold" if summary.is_changed or self.is_open else title),
            (shown, style),
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Opening needs a closed group, closing an open one, and resetting a change."""
        match action:
            case "open":
                return not self.is_open
            case "close":
                return self.is_open
            case "reset":
                return self.summary.is_changed
        return True

    def watch_summary(self) -> None:
        if self.has_focus:
            self.refresh_bindings()

    def action_open_or_close(self) -> None:
        self.post_message(self.Toggled(self, is_open=not self.is_open))

    def action_open(self) -> None:
        self.post_message(self.Toggled(self, is_open=True))

    def action_close(self) -> None:
        self.post_message(self.Toggled(self, is_open=False))

    def action_reset(self) -> None:
        self.post_message(self.Reset(self.title))

    def on_click(self) -> None:
        self.action_open_or_close()


class FieldGroup(Widget):
    """A folded group; its fields are mounted when it is first opened.

    Args:
        title: The title.
        names: Its fields.
        make_field: Makes a field by its name.
    """

    DEFAULT_CSS = """
    FieldGroup { height: auto; layout: vertical; }
    """

    def __init__(self, title: str, names: Sequence[str], make_field: Callable[[str], Field]) -> None:
        super().__init__(id=f"group-{title.lower().replace(', ', '-').replace(' ', '-')}")
        self.title = title
        self.names = tuple(names)
        self.header = GroupHeader(title)
        self._make_field = make_field
        self.fields: dict[str, Field] = {}
        """The mounted fields by name."""

    def compose(self) -> ComposeResult:
        yield self.header

    @property
    def is_open(self) -> bool:
        """Whether the fields are shown."""
        return self.header.is_open

    def update(self, relevant: Sequence[str], summary: GroupSummary) -> None:
        """Show the relevant fields, if open; a group without any is hidden.

        Args:
            relevant: Its relevant fields.
            summary: What the header shows.
        """
        self.display = bool(relevant)
        self.header.summary = summary
        before: Widget = self.header
        shown: Widget = self.header
        for name in self.names:
            is_shown = self.is_open and name in relevant
            if is_shown and name not in self.fields:
                self.fields[name] = self._make_field(name)
                self.mount(self.fields[name], after=before)
            if field := self.fields.get(name):
                if not is_shown and field.has_focus_within:
                    (shown.picker.input if isinstance(shown, Field) else shown).focus()
                field.display = is_shown
                before = field
                shown = field if is_shown else shown
