"""The keys of the New run screen, and what it says of what has the focus: help of a field, else which keys work."""

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Button

from accel_engine.plan import SPECS
from accel_tui.plan import form
from accel_tui.widgets.plan.field import Field
from accel_tui.widgets.plan.field_finder import FieldFinder
from accel_tui.widgets.plan.field_group import GroupHeader

BINDINGS: tuple[BindingType, ...] = (
    Binding("s,ctrl+s", "start", "Start", id="new-run.start", tooltip="Start training"),
    Binding("Q", "queue", "Queue", id="new-run.queue", tooltip="Queue the run until devices are free"),
    Binding(
        "S,f4",
        "search",
        "Search",
        id="new-run.search",
        tooltip="Search for the best values of ranges",
    ),
    Binding("r,ctrl+r", "app.show_runs", "Runs", id="new-run.runs", tooltip="List all runs"),
    Binding(
        "R,f8",
        "race",
        "Race",
        id="new-run.race",
        tooltip="Race the configurations of this plan",
    ),
    Binding("c,f5", "copy", "Copy", id="new-run.copy", tooltip="Copy the equivalent command line"),
    Binding(
        "d,f6",
        "defaults",
        "Defaults",
        id="new-run.defaults",
        show=False,
        tooltip="Reset all fields to their defaults, after a question",
    ),
    Binding(
        "F",
        "measure",
        "Finders",
        id="new-run.measure",
        tooltip="Find a batch size or a learning rate for this plan by measuring",
    ),
    # With priority, as keys that are typed at once after these would else be for what has the focus before.
    Binding(
        "slash",
        "find('/')",
        "Find",
        id="new-run.find",
        tooltip="Find a field by its name or its help",
        priority=True,
    ),
    Binding(
        "f3",
        "find('f3')",
        "Find",
        id="new-run.find-from-field",
        tooltip="Find a field, also while in one",
        priority=True,
    ),
    Binding("down", "app.focus_next", id="new-run.down", tooltip="Next field"),
    Binding("up", "app.focus_previous", id="new-run.up", tooltip="Previous field"),
    Binding("pagedown", "scroll(1)", id="new-run.page-down", tooltip="Scroll down"),
    Binding("pageup", "scroll(-1)", id="new-run.page-up", tooltip="Scroll up"),
    Binding(
        "escape",
        "leave",
        "To Start",
        id="new-run.leave",
        tooltip="Leave the field and go to Start, where letters are keys",
    ),
)
"""Keys that use the plan, find a field, and move between fields; in a field, letters are text."""

_START_HINT = "enter starts the run, ↑ ↓ select a field, / finds one, esc returns to Start"
"""Hint while no field has the focus."""

_GROUP_HINT = "enter shows or hides the fields of this group, / finds a field by typing"
"""Hint while a group has the focus."""

_FINDER_HINT = "type a part of a name; ↑ ↓ select a field, enter goes to it, esc closes"
"""Hint while a field is being found."""

_RUNS_HINT = "↑ ↓ select a run, enter opens it, esc returns to Start"
"""Hint while the recent runs have the focus."""

_CHOICES_HINT = "↑ ↓ select a choice, enter accepts it, esc closes the list"
"""Hint while a list of choices is open."""


def hint_for(focused: Widget | None) -> str:
    """The hint, in one or two lines.

    Args:
        focused: The widget with the focus; ``None`` if there is none.
    """
    within = focused.ancestors if focused else ()
    if field := next((field for field in within if isinstance(field, Field)), None):
        return _CHOICES_HINT if field.picker.is_open else _help_of(field.field)
    if isinstance(focused, GroupHeader):
        return _GROUP_HINT if focused.is_open else f"{_GROUP_HINT}\n{focused.summary.text}"
    if finder := next((finder for finder in within if isinstance(finder, FieldFinder)), None):
        return _help_of(finder.selected) if finder.selected else _FINDER_HINT
    return _START_HINT if focused is None or isinstance(focused, Button) else _RUNS_HINT


def _help_of(field: str) -> str:
    return f"{SPECS[field].doc}\n{form.default_reason(field)}"
