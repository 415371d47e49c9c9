"""Dialog that asks for a new learning rate."""

import math
import re
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from accel_engine.errors import UsageError
from accel_tui.formatting import numbers
from accel_tui.widgets.line_input import LineInput

_FACTOR = re.compile(r"(?P<sign>[x×*/])\s*(?P<number>.+)", re.IGNORECASE)  # noqa: RUF001

HINT = "[@click=screen.set]enter sets $rate[/], [@click=screen.dismiss(None)]esc cancels[/]"


def parse_rate(text: str, current: float | None) -> float:
    """Parse a learning rate.

    Args:
        text: A number, or a change of the current rate: ``x0.5``, ``*0.1``, ``/10``.
        current: The current rate, if known.

    Raises:
        UsageError: The text is not a number greater than 0.
    """
    text = text.strip()
    relative = _FACTOR.fullmatch(text)
    if relative and current is None:
        raise UsageError("the current rate is unknown: enter a number, e.g. 1e-4")
    try:
        number = float(relative["number"] if relative else text)
    except ValueError:
        raise UsageError("must be a number, e.g. 1e-4, or a change, e.g. x0.5 or /10") from None
    if relative and current is not None:
        number = current / (number or math.nan) if relative["sign"] == "/" else current * number
    if not (math.isfinite(number) and number > 0):
        raise UsageError("must be greater than 0")
    return number


class LearningRateScreen(ModalScreen[float | None]):
    """Asks for a learning rate; returns ``None`` when cancelled.

    Args:
        current: The current rate; ``None`` if unknown.
    """

    CSS_PATH = "dialog.tcss"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="learning-rate.back", tooltip="Close without changes")
    ]

    def __init__(self, current: float | None) -> None:
        super().__init__()
        self._current = current

    def compose(self) -> ComposeResult:
        """Compose the current rate, a field, and a hint."""
        now = "unknown" if self._current is None else numbers.learning_rate(self._current)
        with Vertical(classes="dialog"):
            yield Label("Learning rate", classes="question")
            yield Label(f"Current: {now}. From the next step on:", classes="detail")
            yield LineInput(placeholder="1e-4, x0.5, /10", id="rate", compact=True)
            yield Label(_hint(None), id="verdict")

    @on(Input.Changed, "#rate")
    def _validate(self, event: Input.Changed) -> None:
        verdict = self.query_one("#verdict", Label)
        try:
            rate = parse_rate(event.value, self._current) if event.value.strip() else None
        except UsageError as error:
            verdict.set_classes("wrong")
            verdict.update(Content(str(error)))
        else:
            verdict.set_classes("")
            verdict.update(_hint(rate))

    def action_set(self) -> None:
        """Return the learning rate if it is valid."""
        self._set(self.query_one("#rate", Input).value)

    @on(Input.Submitted, "#rate")
    def _submit(self, event: Input.Submitted) -> None:
        self._set(event.value)  # keys that came with enter may have changed the field since

    def _set(self, text: str) -> None:
        try:
            self.dismiss(parse_rate(text, self._current))
        except UsageError:
            self.app.bell()


def _hint(rate: float | None) -> Content:
    """Hint with the keys, which can be clicked."""
    return Content.from_markup(HINT, rate="it" if rate is None else numbers.learning_rate(rate))
