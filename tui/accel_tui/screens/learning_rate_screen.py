"""Dialog that asks for a new learning rate."""

import math
import re
from typing import ClassVar

from textual.binding import Binding, BindingType

from accel_engine.errors import UsageError
from accel_tui.formatting import numbers
from accel_tui.screens.entry_screen import EntryScreen

_FACTOR = re.compile(r"(?P<sign>[x×*/])\s*(?P<number>.+)", re.IGNORECASE)  # noqa: RUF001


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


class LearningRateScreen(EntryScreen[float]):
    """Asks for a learning rate.

    Args:
        current: The current rate; ``None`` if unknown.
    """

    FIELD = "rate"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="learning-rate.back", tooltip="Close without changes")
    ]

    def __init__(self, current: float | None) -> None:
        now = "unknown" if current is None else numbers.learning_rate(current)
        super().__init__("Learning rate", f"Current: {now}. From the next step on:", placeholder="1e-4, x0.5, /10")
        self._current = current

    def parse(self, text: str) -> float:
        """Parse a rate, or a change of the current one."""
        return parse_rate(text, self._current)

    def effect(self, value: float) -> str:
        """Name the rate."""
        return f"sets {numbers.learning_rate(value)}"
