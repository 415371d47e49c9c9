"""Dialog that selects which charts of a run are shown."""

from collections.abc import Sequence
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Label, OptionList
from textual.widgets.option_list import Option

from accel_tui.screens.asking import Dialog
from accel_tui.widgets.chart_panels.run_panels import Panel

AUTOMATIC: tuple[str, ...] = ()
"""Result that shows as many charts as fit."""


class SelectChartsScreen(Dialog[tuple[str, ...]]):
    """Returns the ids of the selected charts; ``None`` if none is selected or nothing has changed.

    Args:
        panels: All available charts.
        shown: Ids of the charts that are shown now.
    """

    CSS_PATH = "select_charts_screen.tcss"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "toggle_chart", "Toggle", id="select-charts.toggle", tooltip="Show or hide this chart"),
        Binding("a,q", "back", "Done", id="select-charts.done", tooltip="Show the selected charts"),
        Binding("d", "default", "Default", id="select-charts.default", tooltip="Show as many charts as fit"),
    ]

    _list = getters.query_one(OptionList)

    def __init__(self, panels: Sequence[Panel], shown: Sequence[str]) -> None:
        super().__init__()
        self._panels = tuple(panels)
        self._shown = frozenset(shown)
        self._selected = set(shown)

    def compose(self) -> ComposeResult:
        """Compose a list with a checkbox per chart."""
        with Vertical(classes="dialog"):
            yield Label("Charts", classes="question")
            yield OptionList(*(Option(self._words(panel), panel.id) for panel in self._panels), compact=True)
            yield Label("space or click: show or hide", classes="detail")
            yield Label("[@click=screen.back]esc: done[/]", classes="detail")
            yield Label("[@click=screen.default]d: as many as fit[/]", classes="detail")

    def _words(self, panel: Panel) -> Content:
        return Content(f"{'[x]' if panel.id in self._selected else '[ ]'} {panel.title}")

    def action_toggle_chart(self) -> None:
        """Select or deselect the highlighted chart."""
        self._list.action_select()

    @on(OptionList.OptionSelected)
    def _toggle_chart(self, event: OptionList.OptionSelected) -> None:
        panel = self._panels[event.option_index]
        self._selected ^= {panel.id}
        self._list.replace_option_prompt_at_index(event.option_index, self._words(panel))

    def action_back(self) -> None:
        """Return the selected charts."""
        changed = self._selected and self._selected != self._shown
        self.dismiss(tuple(panel.id for panel in self._panels if panel.id in self._selected) if changed else None)

    def action_default(self) -> None:
        """Return :data:`AUTOMATIC`."""
        self.dismiss(AUTOMATIC)
