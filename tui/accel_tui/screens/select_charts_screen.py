"""Dialog that selects which charts of a run are shown."""

from collections.abc import Sequence
from itertools import compress
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Label

from accel_tui.plan.form import FieldChoice
from accel_tui.screens.asking import Dialog
from accel_tui.widgets.chart_panels.run_panels import Panel
from accel_tui.widgets.jobs.option_inputs import Checklist
from accel_tui.widgets.list_keys import custom_keys

AUTOMATIC: tuple[str, ...] = ()
"""Result that shows as many charts as fit."""


class SelectChartsScreen(Dialog[tuple[str, ...]]):
    """Returns the keys of the selected charts; ``None`` if no chart is selected or nothing has changed.

    Args:
        panels: All available charts.
        shown: Keys of the charts that are shown now.
    """

    CSS_PATH = "select_charts_screen.tcss"
    WHAT: ClassVar[str] = "Charts"
    """What is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Done", id="dialog.back", tooltip="Show the selected charts"),
        Binding("a,q", "back", "Done", id="select-charts.done", tooltip="Show the selected charts"),
        Binding("f6", "default", "Default", id="select-charts.default", tooltip="Show as many charts as fit"),
    ]

    def __init__(self, panels: Sequence[Panel], shown: Sequence[str]) -> None:
        super().__init__()
        self._keys = [panel.key for panel in panels]
        self._shown = [key in shown for key in self._keys]
        self._list = Checklist([FieldChoice(panel.title) for panel in panels], self._shown)

    def compose(self) -> ComposeResult:
        key = custom_keys(self).get("default", "f6")
        with Vertical(classes="dialog"):
            yield Label(self.WHAT, classes="question")
            yield self._list
            yield Label("space or click: show or hide", classes="detail")
            yield Label("[@click=screen.back]esc: done[/]", classes="detail")
            yield Label(
                Content.from_markup("[@click=screen.default]$key: as many as fit[/]", key=key), classes="detail"
            )

    def action_back(self) -> None:
        chosen = self._list.chosen
        changed = any(chosen) and chosen != self._shown
        self.dismiss(tuple(compress(self._keys, chosen)) if changed else None)

    def action_default(self) -> None:
        self.dismiss(AUTOMATIC)


class SelectColumnsScreen(SelectChartsScreen):
    """Returns the titles of the selected columns of a list of runs."""

    WHAT = "Columns"
