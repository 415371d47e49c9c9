"""Dialog that asks how many runs the queue trains at once."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from accel_engine.errors import UsageError
from accel_tui.formatting.queued_runs import parse_limit
from accel_tui.widgets.line_input import LineInput

DETAIL = "auto: one per accelerator, or one on the CPU. Runs that train are not stopped."

HINT = "[@click=screen.set]enter sets it[/], [@click=screen.dismiss(None)]esc cancels[/]"


class LimitScreen(ModalScreen[str | None]):
    """Asks for a limit; returns its text, or ``None`` when cancelled.

    Args:
        current: The current limit; ``None`` for the default.
    """

    CSS_PATH = "dialog.tcss"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="limit.back", tooltip="Close without changes")
    ]

    def __init__(self, current: int | None) -> None:
        super().__init__()
        self._current = current

    def compose(self) -> ComposeResult:
        """Compose what a limit is, a field, and a hint."""
        with Vertical(classes="dialog"):
            yield Label("Most runs at once", classes="question")
            yield Label(
                "auto: one per accelerator, or one on the CPU. Runs that train are not stopped.", classes="detail"
            )
            yield LineInput(str(self._current or "auto"), id="limit", compact=True)
            yield Label(HINT, id="verdict")

    @on(Input.Changed, "#limit")
    def _validate(self, event: Input.Changed) -> None:
        verdict = self.query_one("#verdict", Label)
        try:
            parse_limit(event.value)
        except UsageError as error:
            verdict.set_classes("wrong")
            verdict.update(str(error))
        else:
            verdict.set_classes("")
            verdict.update(HINT)

    def action_set(self) -> None:
        """Return the limit if it is valid."""
        self._set(self.query_one("#limit", Input).value)

    @on(Input.Submitted, "#limit")
    def _submit(self, event: Input.Submitted) -> None:
        self._set(event.value)  # keys that came with enter may have changed the field since

    def _set(self, text: str) -> None:
        try:
            parse_limit(text)
        except UsageError:
            self.app.bell()
        else:
            self.dismiss(text)
