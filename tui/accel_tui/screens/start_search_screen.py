"""Dialog that asks for the name, trials, monitor and time of a search of the form's ranges."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from accel_engine.errors import AccelError
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.search.definition import Parameter
from accel_engine.search.over import format_values
from accel_tui.formatting import field_labels
from accel_tui.plan import search_start
from accel_tui.plan.search_start import SearchRequest
from accel_tui.screens.change_search_screen import problem_text
from accel_tui.widgets.line_input import LineInput

LABELS = {
    "name": "name of the search",
    "trials": "number of trials",
    "monitor": "monitor (e.g. val_loss, or my_metric maximize)",
    "within": "no further trial after (e.g. 2h)",
}
"""Labels of the questions."""

HINT = "[@click=screen.search]enter searches[/], [@click=screen.dismiss(None)]esc cancels[/]"


class StartSearchScreen(ModalScreen[SearchRequest | None]):
    """Asks what a search needs besides the form; returns the search to begin, or ``None`` when cancelled.

    Args:
        filled: The form.
        parameters: What varies.
    """

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="start-search.back", tooltip="Close without a search"),
        Binding("down", "app.focus_next", id="start-search.down", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="start-search.up", tooltip="Previous field"),
    ]

    def __init__(self, filled: ResolvedPlan, parameters: Sequence[Parameter]) -> None:
        super().__init__()
        self._plan = filled.plan
        self._parameters = tuple(parameters)
        self._defaults = search_start.default_texts(filled)

    def compose(self) -> ComposeResult:
        """Compose what varies, a field for each question, and a hint."""
        ranges = (f"{field_labels.label(each.name)} {format_values(each)}" for each in self._parameters)
        with Vertical(classes="dialog"):
            yield Label("Search for the best plan", classes="question")
            yield Label(", ".join(ranges), classes="detail", markup=False)
            for name, text in self._defaults.items():
                yield Label(LABELS[name], classes="label")
                yield LineInput(text, placeholder="no limit" if name == "within" else "", id=name, compact=True)
            yield Label(id="verdict")

    @property
    def _texts(self) -> dict[str, str]:
        return {name: self.query_one(f"#{name}", Input).value for name in LABELS}

    @on(Input.Changed)
    def _validate(self) -> None:
        verdict = self.query_one("#verdict", Label)
        for name, text in self._texts.items():
            try:
                search_start.PARSERS[name](text)
            except AccelError as error:
                verdict.set_classes("wrong")
                verdict.update(Content(f"{LABELS[name].partition(' (')[0]}: {problem_text(error)}"))
                return
        verdict.set_classes("")
        verdict.update(Content.from_markup(HINT))

    def action_search(self) -> None:
        """Return the search if all fields are valid."""
        try:
            self.dismiss(search_start.request(self._plan, self._parameters, self._texts))
        except AccelError:
            self.app.bell()

    @on(Input.Submitted)
    def _submit(self) -> None:
        self.action_search()
