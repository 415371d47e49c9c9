"""Choosing which charts of a run are shown."""

from collections.abc import Sequence
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label, OptionList
from textual.widgets.option_list import Option

from accel_tui.widgets.charts.run_panels import Panel

AS_MANY_AS_FIT: tuple[str, ...] = ()
"""What is answered when nothing shall be chosen."""


class SelectChartsScreen(ModalScreen[tuple[str, ...] | None]):
    """Returns the ids of the charts that shall be shown; ``None`` when it is left with none or as it was.

    Args:
        panels: All charts that there can be.
        shown: The ids of those that are shown now.
    """

    CSS_PATH = "select_charts_screen.tcss"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "tick", "Tick", id="charts-choice.tick", tooltip="Show this chart, or no longer"),
        Binding("escape,a,q", "done", "Done", id="charts-choice.done", tooltip="Show the charts that are ticked"),
        Binding("d", "default", "Default", id="charts-choice.default", tooltip="Show as many charts as fit well"),
    ]

    _list = getters.query_one(OptionList)

    def __init__(self, panels: Sequence[Panel], shown: Sequence[str]) -> None:
        super().__init__()
        self._panels = tuple(panels)
        self._shown = frozenset(shown)
        self._ticked = set(shown)

    def compose(self) -> ComposeResult:
        """A list with a box for each chart."""
        with Vertical(classes="dialog"):
            yield Label("Which charts?", classes="question")
            yield OptionList(*(Option(self._words(panel), panel.id) for panel in self._panels), compact=True)
            yield Label("space or a click ticks", classes="detail")
            yield Label("[@click=screen.done]esc shows what is ticked[/]", classes="detail")
            yield Label("[@click=screen.default]d shows as many as fit well[/]", classes="detail")

    def _words(self, panel: Panel) -> Content:
        return Content(f"{'[x]' if panel.id in self._ticked else '[ ]'} {panel.title}")

    def action_tick(self) -> None:
        """Tick what is marked, or no longer."""
        self._list.action_select()

    @on(OptionList.OptionSelected)
    def _tick(self, event: OptionList.OptionSelected) -> None:
        panel = self._panels[event.option_index]
        self._ticked ^= {panel.id}
        self._list.replace_option_prompt_at_index(event.option_index, self._words(panel))

    def action_done(self) -> None:
        """Show those that are ticked."""
        changed = self._ticked and self._ticked != self._shown
        self.dismiss(tuple(panel.id for panel in self._panels if panel.id in self._ticked) if changed else None)

    def action_default(self) -> None:
        """Choose nothing."""
        self.dismiss(AS_MANY_AS_FIT)
