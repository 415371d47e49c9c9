"""What the New run screen says of what has the focus: help of a field, else which keys work."""

from textual.widget import Widget
from textual.widgets import Button

from accel_engine.plan import SPECS
from accel_tui.plan import form
from accel_tui.widgets.plan.field import Field
from accel_tui.widgets.plan.field_finder import FieldFinder
from accel_tui.widgets.plan.field_group import GroupHeader

START_HINT = "enter starts the run, ↑ ↓ select a field, / finds one, esc returns to Start"
"""Hint while no field has the focus."""

GROUP_HINT = "enter shows or hides the fields of this group, / finds a field by typing"
"""Hint while a group has the focus."""

FINDER_HINT = "type a part of a name; ↑ ↓ select a field, enter goes to it, esc closes"
"""Hint while a field is being found."""

RUNS_HINT = "↑ ↓ select a run, enter opens it, esc returns to Start"
"""Hint while the recent runs have the focus."""

CHOICES_HINT = "↑ ↓ select a choice, enter accepts it, esc closes the list"
"""Hint while a list of choices is open."""


def hint_for(focused: Widget | None) -> str:
    """The hint, in one or two lines.

    Args:
        focused: The widget with the focus; ``None`` if there is none.
    """
    within = focused.ancestors if focused else ()
    if field := next((field for field in within if isinstance(field, Field)), None):
        return CHOICES_HINT if field.picker.is_open else _help_of(field.field)
    if isinstance(focused, GroupHeader):
        return GROUP_HINT if focused.is_open else f"{GROUP_HINT}\n{focused.summary.text}"
    if finder := next((finder for finder in within if isinstance(finder, FieldFinder)), None):
        return _help_of(finder.selected) if finder.selected else FINDER_HINT
    return START_HINT if focused is None or isinstance(focused, Button) else RUNS_HINT


def _help_of(field: str) -> str:
    return f"{SPECS[field].doc}\n{form.reason(field)}"
