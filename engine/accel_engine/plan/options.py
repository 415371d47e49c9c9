"""Options of commands and jobs: each is declared once, at the field of the dataclass that takes it."""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from accel_engine.errors import PlanError, UsageError
from accel_engine.plan.field_spec import FieldSpec

T = TypeVar("T")

_LATENCY = re.compile(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s)")
_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, slots=True)
class OptionSpec(FieldSpec):
    """The specification of an option, from which its option of commands and its row of forms are made."""

    none_word: str = "nothing"
    label: str = ""
    """Its label in forms, if that is not its name."""
    hint: str = ""
    """What an empty row of a form stands for, or an example."""
    metavar: str = ""
    """The word for its value in the help of commands."""
    flags: tuple[str, ...] = ()
    """The options of commands, if they are not made from its name."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What each choice means."""
    suffixes: tuple[str, ...] | None = None
    """Suffixes of the files that are completed, if it is a path; empty for folders only."""
    goes_with: tuple[str, tuple[str, ...]] | None = None
    """Another option and some of its values; forms hide it without any of these."""
    unit: str = ""
    """What follows its value in commands that this program writes."""
    repeats: bool = False
    """Whether a command may have it several times, each with one value."""
    is_required: bool = False
    """Whether commands and forms need it."""
    read: Callable[[str], Any] | None = None
    """Converts a text to the value, if the type alone does not say how; raises a ``UsageError``."""

    @property
    def completions(self) -> tuple[str, ...]:
        """Its choices, and usual values of another text, which have notes."""
        return tuple(dict.fromkeys((*self.choices, *self.notes)))

    def flag(self, name: str) -> str:
        """Its option of commands."""
        return (self.flags or (f"--{name.replace('_', '-')}",))[0]

    def value_of(self, name: str, text: str) -> Any:
        """The value that a text gives the option of a name.

        Raises:
            UsageError: The option has no such value.
        """
        if self.read is not None:
            return self.read(text)
        return None if self.optional and not text.strip() else self.parse(name, text)


FORCE = OptionSpec("Overwrite an existing file.", bool)
"""Whether a file is overwritten."""


def option(default: Any, spec: OptionSpec) -> Any:
    """A field of a dataclass that is an option."""
    return field(default=default, metadata={"option": spec})


def joined_options(*parts: tuple[type, Sequence[str]]) -> list[tuple[str, Any, Any]]:
    """Fields of several dataclasses of options, for one that has them all; see :func:`dataclasses.make_dataclass`."""
    return [
        (each.name, each.type, field(default=each.default, metadata=each.metadata))
        for kind, names in parts
        for each in dataclasses.fields(kind)
        if each.name in names
    ]


def part_of(kind: type[T], options: object) -> T:
    """Take the options of one dataclass from another one; those that it lacks have their defaults.

    Raises:
        UsageError: Two options contradict each other.
    """
    names = {each.name for each in dataclasses.fields(options)}  # type: ignore[arg-type]
    return kind(**{each: getattr(options, each) for each in specs_of(kind) if each in names})


def specs_of(kind: type) -> dict[str, OptionSpec]:
    """The options of a dataclass by the names of its fields."""
    return {each.name: each.metadata["option"] for each in dataclasses.fields(kind) if "option" in each.metadata}


def default_of(kind: type, name: str) -> Any:
    """The default of a field of a dataclass."""
    return next(each.default for each in dataclasses.fields(kind) if each.name == name)


def text_of(value: Any) -> str:
    """The value of an option as a text, numbers with a point with six digits; empty for none."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(map(text_of, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def command_words(options: object) -> list[str]:
    """The options of commands that give the values of a dataclass which are not its defaults."""
    kind = type(options)
    values = {name: getattr(options, name) for name in specs_of(kind)}
    return words_of_values(kind, {name: value for name, value in values.items() if value != default_of(kind, name)})


def words_of_values(kind: type, values: Mapping[str, Any]) -> list[str]:
    """The options of commands that give these values of a dataclass's fields."""
    words = list[str]()
    for name, value in values.items():
        spec = specs_of(kind)[name]
        flag = spec.flag(name)
        for part in value if spec.repeats else (value,):
            words += [flag, f"{text_of(part)}{spec.unit}"]
    return words


def option_problem(error: UsageError, text: str) -> str:
    """The error in the text of an option."""
    if not isinstance(error, PlanError):
        return str(error)
    colon = "" if error.allowed.startswith("must be") else ":"
    wrong = error.value if isinstance(error.value, str) else text  # one name of a list, else the whole text
    return f"{wrong!r}{colon} {error.allowed}"


def parse_latency(text: str) -> float | None:
    """Parse a time with its unit, such as ``10ms``; gives seconds, ``None`` for an empty text.

    Raises:
        UsageError: The text is not a time with a unit.
    """
    if not text.strip():
        return None
    found = _LATENCY.fullmatch(text.strip())
    if not found or not 0 < float(found[1]) < math.inf:
        raise UsageError(f"{text!r} is not a latency: give one with its unit, such as 10ms, 500us or 1.5s")
    return float(found[1]) * _UNITS[found[2]]
