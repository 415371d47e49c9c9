"""The specification of a plan's field: documentation, type and allowed values."""

import difflib
from dataclasses import dataclass
from typing import Any

from accel_engine.errors import PlanError

AUTO = "auto"
"""The text of an unset value."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """The specification of a plan's field, from which the command line and the form are made.

    Attributes:
        doc: One line for ``--help``, the form and the TOML file.
        type: ``str``, ``int`` or ``float``; ``tuple`` for several names.
        choices: The allowed values; empty if there are no choices.
        minimum: Minimum of a number.
        above: Exclusive minimum of a number.
        maximum: Maximum of a number.
        optional: Whether ``None`` is allowed, with the text :data:`AUTO`, which also means an empty tuple.
        example: An example for the help.
    """

    doc: str
    type: type
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    optional: bool = False
    example: str = ""

    @property
    def allowed(self) -> str:
        """A description of the allowed values, for messages."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        noun = {int: "a whole number", float: "a number", str: "text", tuple: f"a list of names, or {AUTO}"}[self.type]
        bounds = [
            text
            for bound, text in (
                (self.minimum, f"at least {self.minimum}"),
                (self.above, f"above {self.above}"),
                (self.maximum, f"at most {self.maximum}"),
            )
            if bound is not None
        ]
        return " ".join([noun, " and ".join(bounds)]).strip() + (f", or {AUTO}" if self.optional else "")

    def parse(self, name: str, text: str) -> Any:
        """Parse a value.

        Raises:
            PlanError: It is not allowed.
        """
        value: Any = text.strip()
        if self.type in (int, float) and not (self.optional and value == AUTO):
            try:
                # Commas separate thousands in integers only: in a fraction, many people use a decimal comma.
                value = int(value.replace(",", "")) if self.type is int else float(value)
            except ValueError:
                raise PlanError(name, text, f"must be {self.allowed}") from None
        return self.check(name, value)

    def check(self, name: str, value: Any) -> Any:
        """Check a value, and convert it to its exact type.

        Raises:
            PlanError: It is not allowed.
        """
        wrong = PlanError(name, value, f"must be {self.allowed}")
        if self.optional and value in (None, AUTO):
            return None
        if self.type is tuple:
            items = () if value == AUTO else value.replace(",", " ").split() if isinstance(value, str) else value
            if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
                raise wrong
            return tuple(items)
        if isinstance(value, bool):
            raise wrong
        if self.type is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, self.type):
            raise wrong
        if self.choices and value not in self.choices:
            near = difflib.get_close_matches(str(value), self.choices, n=1)
            raise PlanError(name, value, wrong.allowed + (f" (did you mean {near[0]}?)" if near else ""))
        if isinstance(value, int | float) and not self._in_bounds(value):
            raise wrong
        return value

    def _in_bounds(self, value: float) -> bool:
        return (
            value == value
            and abs(value) != float("inf")
            and (self.minimum is None or value >= self.minimum)
            and (self.above is None or value > self.above)
            and (self.maximum is None or value <= self.maximum)
        )
