"""The specification of a plan field: description, type and allowed values."""

import difflib
from dataclasses import dataclass
from typing import Any

from accel_engine.errors import PlanError

AUTO = "auto"
"""The text of an omitted value, where an empty text would be ambiguous."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """The specification of a plan field; command-line options and the form are generated from it.

    Attributes:
        doc: A one-line description for ``--help``, the form and the TOML file.
        type: ``str``, ``int`` or ``float``; ``tuple`` for a list of names.
        choices: The allowed values, or names of a list; empty for any.
        minimum: The smallest allowed number.
        above: The exclusive lower bound.
        maximum: The largest allowed number.
        below: The exclusive upper bound.
        optional: Whether ``None`` is allowed, written as :data:`AUTO`; so is an empty list of names.
        example: A value for the help.
        has_words: Whether the names of a list are single words, which blanks separate as well as commas.
        is_share: Whether a number is a share, which may be written in percent; without a maximum, a number of at least
            1 is a number of steps.
    """

    doc: str
    type: type
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    below: float | None = None
    optional: bool = False
    example: str = ""
    has_words: bool = False
    is_share: bool = False

    @property
    def allowed(self) -> str:
        """The allowed values, as a phrase for messages and help."""
        if self.choices:
            several = f"one or more of {', '.join(self.choices)}, or {AUTO}"
            return several if self.type is tuple else f"one of {', '.join(self.choices)}"
        if self._counts_steps:
            return f"a number of steps, or a share of all steps below 100%, e.g. {self.example}"
        noun = {int: "an integer", float: "a number", str: "text", tuple: f"a list of names, or {AUTO}"}[self.type]
        if self.minimum is not None and self.maximum is not None:
            bounds = f" from {self.minimum} to {self.maximum}"
        elif self.below is not None:
            lower = f"of at least {self.minimum}" if self.above is None else f"above {self.above}"
            bounds = f" {lower} and below {self.below}"
        elif self.minimum is not None:
            bounds = f" of at least {self.minimum}"
        else:
            bounds = f" above {self.above}" if self.above is not None else ""
        return f"{noun}{bounds}" + (f", or {AUTO}" if self.optional else "")

    @property
    def _counts_steps(self) -> bool:
        return self.is_share and self.maximum is None

    def parse(self, name: str, text: str) -> Any:
        """Parse a value from text.

        Raises:
            PlanError: The value is not allowed.
        """
        value: Any = text.strip()
        if self.type in (int, float) and not (self.optional and value == AUTO):
            try:
                # A comma separates thousands; in a float it is ambiguous, as many locales use it as the decimal point.
                value = int(value.replace(",", "")) if self.type is int else self._number(value)
            except ValueError:
                raise PlanError(name, text, f"must be {self.allowed}") from None
        return self.check(name, value)

    def check(self, name: str, value: Any) -> Any:
        """Validate a value and convert it to the exact type.

        Raises:
            PlanError: The value is not allowed.
        """
        if self.optional and value in (None, AUTO):
            return () if self.type is tuple else None
        if self.type is tuple:
            items = () if value == AUTO else self._split(value) if isinstance(value, str) else value
            if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
                raise self._wrong(name, value)
            for item in items if self.choices else ():
                self._check_choice(name, item)
            return tuple(items)
        if isinstance(value, bool):
            raise self._wrong(name, value)
        if self.is_share and isinstance(value, str):
            return self.parse(name, value)
        if self.type is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, self.type):
            raise self._wrong(name, value)
        if self.choices:
            self._check_choice(name, value)
        if isinstance(value, int | float) and not self._in_bounds(value):
            raise self._wrong(name, value)
        return value

    def _wrong(self, name: str, value: Any, hint: str = "") -> PlanError:
        """The error of a value."""
        return PlanError(name, value, f"must be {self.allowed}{hint}")

    def _check_choice(self, name: str, item: Any) -> None:
        if item not in self.choices:
            near = difflib.get_close_matches(str(item), self.choices, n=1)
            raise self._wrong(name, item, f" (did you mean {near[0]}?)" if near else "")

    def _number(self, text: str) -> float:
        """A number, or a share in percent."""
        if not self.is_share or not text.endswith("%"):
            return float(text)
        share = float(text[:-1]) / 100
        if self._counts_steps and share >= 1:
            raise ValueError(text)
        return share

    def _split(self, text: str) -> list[str]:
        """The names in a text, between commas."""
        names = text.replace(" ", ",").split(",") if self.has_words else text.split(",")
        return [name.strip() for name in names if name.strip()]

    def _in_bounds(self, value: float) -> bool:
        return (
            value == value
            and abs(value) != float("inf")
            and (self.minimum is None or value >= self.minimum)
            and (self.above is None or value > self.above)
            and (self.maximum is None or value <= self.maximum)
            and (self.below is None or value < self.below)
        )
