"""What a field of a plan means and may be."""

import difflib
from dataclasses import dataclass
from typing import Any

from accel_engine.errors import PlanError

AUTO = "auto"
"""What is written for a value that is left out, where something else would stand for nothing."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """What a field of the plan means and may be; the command line and the form are made from it.

    Attributes:
        doc: One line for ``--help``, the form and the TOML file.
        type: ``str``, ``int`` or ``float``; ``tuple`` for several names.
        choices: The only values allowed, when they are few.
        minimum: The smallest number allowed.
        above: The number that a value must exceed.
        maximum: The largest number allowed.
        optional: Whether ``None`` (leave it out) is allowed; it can be written as :data:`AUTO`, as can no names at all.
        example: A value to show in help.
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
        """What a value may be, in words."""
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
        """Read a value from text, or raise :class:`PlanError`."""
        value: Any = text.strip()
        if self.type in (int, float) and not (self.optional and value == AUTO):
            try:
                # A comma parts thousands; in a number with a fraction, to many people it would be its point.
                value = int(value.replace(",", "")) if self.type is int else float(value)
            except ValueError:
                raise PlanError(name, text, f"must be {self.allowed}") from None
        return self.check(name, value)

    def check(self, name: str, value: Any) -> Any:
        """Return the value in its exact type, or raise :class:`PlanError`."""
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
