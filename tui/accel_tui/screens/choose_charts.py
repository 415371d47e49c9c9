"""Choosing which charts of a run are shown."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Label, SelectionList
from textual.widgets.selection_list import Selection

from accel_tui.widgets.run_panels import Panel

AS_MANY_AS_FIT: tuple[str, ...] = ()
"""What is answered when nothing shall be chosen."""


class ChooseChartsScreen(ModalScreen[tuple[str, ...]]):
    """Returns the ids of the charts that shall be shown; none of them for as many as there is room for.

    Args:
        panels: All charts that there can be.
        shown: The ids of those that are shown now.
    """

    CSS_PATH = "choose_charts.tcss"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,a,q", "done", "Done", id="charts-choice.done", tooltip="Show the charts that are ticked"),
        Binding("d", "default", "Default", id="charts-choice.default", tooltip="Show as many charts as fit well"),
    ]

    def __init__(self, panels: Sequence[Panel], shown: Sequence[str]) -> None:
        super().__init__()
        self._panels = tuple(panels)
        self._shown = frozenset(shown)

    def compose(self) -> ComposeResult:
        """A list with a box for each chart."""
        with Vertical(classes="dialog"):
            yield Label("Which charts?", classes="question")
            yield SelectionList[str](
                *(Selection(panel.title, panel.id, panel.id in self._shown) for panel in self._panels), compact=True
            )
            yield Label("space or a click ticks", classes="detail")
            yield Label("[@click=screen.done]esc shows what is ticked[/]", classes="detail")
            yield Label("[@click=screen.default]d shows as many as fit well[/]", classes="detail")

    def action_done(self) -> None:
        """Show those that are ticked."""
        ticked = self.query_one(SelectionList).selected
        self.dismiss(tuple(panel.id for panel in self._panels if panel.id in ticked))

    def action_default(self) -> None:
        """Choose nothing."""
        self.dismiss(AS_MANY_AS_FIT)
