"""The specification of a plan field: description, type, allowed values, the words about it, and its effects."""

import difflib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias

from accel_engine.errors import PlanError

MAX_NUMBER = 10**15
"""The largest integer of any field: more steps or bytes than any run has, and exact as a float."""

AUTO = "auto"
"""The text of an omitted value, where an empty text would be ambiguous."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """The specification of a plan field; command-line options and the form are generated from it."""

    doc: str
    """A one-line description for ``--help``, the form and the TOML file."""
    type: type
    """``str``, ``int`` or ``float``; ``tuple`` for a list of names."""
    choices: tuple[str, ...] = ()
    """The allowed values, or names of a list; empty for any."""
    minimum: float | None = None
    """The smallest allowed number."""
    above: float | None = None
    """The exclusive lower bound."""
    maximum: float | None = None
    """The largest allowed number."""
    below: float | None = None
    """The exclusive upper bound."""
    optional: bool = False
    """Whether ``None`` is allowed, written as :data:`AUTO` or ``none``; so is an empty list of names."""
    none_word: str = AUTO
    """The word for ``None`` or an empty list in messages and in the form."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of choices, in lower case, with the names that are stored."""
    example: str = ""
    """A value for the help."""
    has_words: bool = False
    """Whether the names of a list are single words, which blanks separate as well as commas."""
    is_share: bool = False
    """Whether a number is a share, which may be written in percent; without a maximum, a number of at least 1 is a
    number of steps."""

    @property
    def allowed(self) -> str:
        """The allowed values, as a phrase for messages and help."""
        if self.choices:
            several = "one or more of" if self.type is tuple else "one of"
            return f"{several} {', '.join(self.choices)}{self._or_none}"
        if self._counts_steps:
            return f"a number of steps, or a share of all steps below 100%, e.g. {self.example}"
        noun = {int: "an integer", float: "a number", str: "text", tuple: "a list of names"}[self.type]
        if self.type is str and self.example:
            noun += f', e.g. "{self.example}"'
        if self.minimum is not None and self.maximum is not None:
            bounds = f" from {self.minimum} to {self.maximum}"
        elif self.below is not None:
            lower = f"of at least {self.minimum}" if self.above is None else f"above {self.above}"
            bounds = f" {lower} and below {self.below}"
        elif self.minimum is not None:
            bounds = f" of at least {self.minimum}"
        else:
            bounds = f" above {self.above}" if self.above is not None else ""
        return f"{noun}{bounds}{self._or_none}"

    @property
    def _or_none(self) -> str:
        return f", or {self.none_word}" if self.optional else ""

    @property
    def _counts_steps(self) -> bool:
        return self.is_share and self.maximum is None

    def parse(self, name: str, text: str) -> Any:
        """Parse a value from text.

        Raises:
            PlanError: The value is not allowed.
        """
        value: Any = text.strip()
        if self.type in (int, float) and not self._is_none(value):
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
        if self._is_none(value):
            return () if self.type is tuple else None
        if isinstance(value, bool) and (word := "on" if value else "off") in self.choices:
            return word
        if self.type is tuple:
            items: Any = self._split(value) if isinstance(value, str) else value
            if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
                as_names = f" (did you mean {_names_in(value)}?)" if isinstance(value, dict) and value else ""
                raise self._wrong(name, value, as_names)
            return tuple(self._choice(name, item) for item in items) if self.choices else tuple(items)
        if isinstance(value, bool):
            raise self._wrong(name, value)
        if self.is_share and isinstance(value, str):
            return self.parse(name, value)
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise self._wrong(name, value, f", up to {MAX_NUMBER:,}")
        if self.type is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, self.type):
            raise self._wrong(name, value)
        if self.choices:
            value = self._choice(name, str(value))
        if isinstance(value, int | float) and not self._in_bounds(value):
            raise self._wrong(name, value)
        return value

    def _wrong(self, name: str, value: Any, hint: str = "") -> PlanError:
        """The error of a value."""
        return PlanError(name, value, f"must be {self.allowed}{hint}")

    def _is_none(self, value: Any) -> bool:
        return self.optional and (value is None or (isinstance(value, str) and value in (AUTO, self.none_word)))

    def _choice(self, name: str, item: str) -> str:
        """The choice that a name stands for."""
        if item in self.choices:
            return item
        word = item.lower()
        if word in self.aliases:
            return self.aliases[word]
        near = difflib.get_close_matches(word, (*self.choices, *self.aliases), n=1)
        if near:  # first, as the choices may be many, and a narrow screen cuts them
            raise PlanError(name, item, f"did you mean {near[0]}? Must be {self.allowed}")
        raise self._wrong(name, item)

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


def _names_in(table: Mapping[str, Any]) -> str:
    """A table as a list of names: ``"1=3.0"``."""
    return '"' + ",".join(f"{key}={value}" for key, value in table.items()) + '"'


Group: TypeAlias = Literal[
    "Model and data",
    "Task, inputs",
    "Columns",
    "Time series",
    "Splits",
    "Epochs, batches",
    "Loss, metrics",
    "Optimizer",
    "LR schedule",
    "Augmentation",
    "Fine-tuning",
    "Validation",
    "Early stopping",
    "Checkpoints",
    "Devices",
]
"""Titles of groups; at most 15 characters, to stand before the values in the form."""

Effect: TypeAlias = Literal["data", "learning", "loss", "speed", "memory", "steps", "intervals", "report"]
"""What a field changes of all steps, or between them:

- ``data``: the examples of training or validation
- ``learning``: how a step changes the weights
- ``loss``: which function the loss is, so that its values cannot be compared
- ``speed``: how fast the steps are
- ``memory``: how much memory they need
- ``steps``: how many steps there are, and how many examples a replica gets at once
- ``intervals``: how often something happens between steps
- ``report``: what is measured, recorded and compared
"""

ChangedBy: TypeAlias = Literal["nothing", "continuation", "command"]
"""What may change a field of a run that has begun; ``command``: a command to its engine, or a continuation."""


@dataclass(frozen=True, slots=True)
class FieldWords:
    """The words about a field, for the form, the command line and files."""

    group: Group
    """Its group in the form and in the help."""
    why: str
    """The reason of its default, in a few words."""
    label: str = ""
    """Its label, if that is not its name."""
    placeholder: str = ""
    """The value that an empty field stands for, where the specification's ``none`` does not say it."""
    metavar: str = ""
    """The word for its value in the help of commands, if it is not the last word of its name; the word for one item of
    a list."""
    synonyms: tuple[str, ...] = ()
    """Words of Keras and others, by which it is found."""
    suggestions: tuple[tuple[str, str], ...] = ()
    """Usual values of a free text, with descriptions."""
    catalogue: str = ""
    """The module whose ``CATALOGUE`` has further values by name."""
    takes_files: bool = False
    """Whether a path is completed."""
    tells_runs_apart: bool = False
    """Whether it is a text by which lists, cards and titles tell runs apart."""
    first: tuple[int, int] | None = None
    """Its panel and row among the fields that New run always shows; it shows others where they are not at their
    default, and finds them by typing."""
    next: int | None = None
    """Its place among the fields whose defaults New run lists below these, as many as there is room for."""


@dataclass(frozen=True, slots=True)
class FieldUse:
    """The effects of a field, and who may change it."""

    affects: tuple[Effect, ...]
    """What it changes, first what it is set for; empty if it changes no step."""
    _: KW_ONLY
    changed_by: ChangedBy
    """What may change it in a run that has begun; nothing, if a checkpoint depends on it: it decides what variables
    mean (model, optimizer), or which examples were trained on (data, batch size, seed)."""
    fixed: str
    """Why a search cannot vary it; empty if it can."""
    only_training: bool
    """Whether only training needs it: a trained run is opened as if it had the default."""
    argument: str = ""
    """The argument of Keras' optimizers that it sets."""
    replaced_by: Literal["", "train_step", "optimizers"] = ""
    """What replaces it in a model with a custom ``train_step``: that, or the model's several optimizers."""
    fits_tasks: bool = False
    """Whether its value fits some tasks only, and is left out for other ones."""
    is_autotuned: bool = False
    """Whether a run that leaves it open chooses its value by measuring while it trains."""
    in_trials: Any = None
    """Its value in trials of a search whose plan leaves it out: a cure would change what is compared, and trials are
    many; ``None`` for its default."""
