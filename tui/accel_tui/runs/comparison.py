"""Runs side by side: what differs between their plans, what is equal, and what came of them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel_engine.plan import DEFAULTS
from accel_engine.run import RunSummary
from accel_engine.run.schema import LEARNING_RATE
from accel_tui.formatting import field_labels, figures, names
from accel_tui.run.state import RunState

MOST = 8
"""The most runs that are compared: as many as can be told apart in a chart."""

NOTHING = "—"
"""Stands where a run has no such value."""

_UNTOLD: Any = object()
"""The value of a field that a script told nothing of."""

_TITLES = frozenset({"name"})  # are said above the columns


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the runs that are compared.

    Attributes:
        run: It in a line.
        state: It as far as it was followed.
    """

    run: RunSummary
    state: RunState

    @property
    def title(self) -> str:
        """What it is called: its name, else its id."""
        return (self.run.info.name if self.run.info else "") or self.run.id

    @property
    def plan(self) -> Mapping[str, Any]:
        """Its plan, with the defaults for the fields that are younger than it; of a script, what that told."""
        info = self.run.info
        return info.values if info and info.script else {**DEFAULTS, **(info.values if info else {})}

    @property
    def speed(self) -> float | None:
        """Steps a second: of its last engine where that has ended, else of late."""
        ended = self.state.ended
        return (ended.steps_per_second or None) if ended else self.state.rate

    @property
    def seconds(self) -> float:
        """How long engines have worked on it."""
        return max(self.run.seconds, self.state.elapsed(self.state.pace.ended) or 0.0)

    @property
    def devices(self) -> str:
        """What it is trained on: ``2 x NVIDIA H100``."""
        if self.state.devices is None:
            return ""
        counts = Counter(each.get("description") or each["name"] for each in self.state.devices.devices)
        return ", ".join(f"{count} x {name}" if count > 1 else str(name) for name, count in counts.items())


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One thing that is told of every run.

    Attributes:
        label: What it is.
        values: As they are, one a run; ``None`` where there is none.
        texts: The same for people.
        best: Which runs have the best value, where one is better than another.
    """

    label: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    best: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side.

    Attributes:
        sides: The runs.
        results: What came of them.
        plan: The fields of their plans that differ.
        equal: The fields that are equal and are not the defaults, by name.
        defaults: How many fields are the default in all.
    """

    sides: tuple[ComparedRun, ...]
    results: tuple[ComparedRow, ...]
    plan: tuple[ComparedRow, ...]
    equal: Mapping[str, Any]
    defaults: int

    @property
    def words(self) -> str:
        """What is equal, in a line."""
        told = ", ".join(f"{field_labels.label(name)} {_value(name, value)}" for name, value in self.equal.items())
        rest = f"{self.defaults} fields are at their defaults in all"
        return f"Equal: {told}; {rest}." if told else f"{rest[0].upper()}{rest[1:]}."


def compare(sides: Sequence[ComparedRun]) -> Comparison:
    """Lay runs side by side."""
    plans = [side.plan for side in sides]
    wanted = [name for name in dict.fromkeys(name for plan in plans for name in plan) if name not in _TITLES]
    columns = {name: tuple(_comparable(plan.get(name, _UNTOLD)) for plan in plans) for name in wanted}
    usual = {name: _comparable(DEFAULTS.get(name)) for name in wanted}
    # What a script told nothing of differs only from what is not the default.
    known = {name: {usual[name] if value is _UNTOLD else value for value in values} for name, values in columns.items()}
    alike = {name: values.pop() for name, values in known.items() if len(values) == 1}
    equal = {name: value for name, value in alike.items() if value != usual[name]}
    differing = [
        ComparedRow(field_labels.label(name), values, _values(name, values))
        for name, values in columns.items()
        if name not in alike
    ]
    return Comparison(tuple(sides), tuple(_results(sides)), tuple(differing), equal, len(alike) - len(equal))


def series_of(sides: Sequence[ComparedRun]) -> list[str]:
    """What was measured of all runs: at steps, in the order in which the runs name it, then in validations only."""
    told = [name for side in sides for name in (side.state.built.series if side.state.built else ())]
    found = [name for side in sides for name in side.state.curves]
    tried = [name for side in sides for name in side.state.validation]
    return [name for name in dict.fromkeys([*told, *found, *tried]) if name != LEARNING_RATE] or ["loss"]


def _results(sides: Sequence[ComparedRun]) -> Iterable[ComparedRow]:
    yield _row("status", [str(side.run.status or "unreadable") for side in sides], str)
    yield _row("steps", [side.run.steps for side in sides], "{:,}".format)
    metrics = [side.run.metrics or {} for side in sides]
    for name in dict.fromkeys(name for each in metrics for name in each):
        values = [each.get(name) for each in metrics]
        highest = False if "loss" in name or "error" in name else True if "acc" in name else None
        yield _row(name.replace("validation_", "val ").replace("_", " "), values, figures.metric, highest)
    yield _row("steps/s", [side.speed for side in sides], figures.compact, highest=True)
    yield _row("time", [side.seconds or None for side in sides], figures.duration)
    if any(side.state.live for side in sides):
        yield _row("to go", [side.state.remaining if side.state.live else None for side in sides], figures.duration)
    yield _row("devices", [side.devices or None for side in sides], str)


def _row(label: str, values: Sequence[Any], text: Callable[[Any], str], highest: bool | None = None) -> ComparedRow:
    """A row; with ``highest``, whether the highest value is the best, or the lowest."""
    texts = tuple(NOTHING if value is None else text(value) for value in values)
    known = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    if highest is None or len(set(known)) < 2:
        return ComparedRow(label, tuple(values), texts)
    best = max(known) if highest else min(known)
    return ComparedRow(
        label, tuple(values), texts, frozenset(place for place, value in enumerate(values) if value == best)
    )


def _values(field: str, values: Sequence[Any]) -> tuple[str, ...]:
    """The values for people, in full where they would look alike else."""
    texts = tuple(_value(field, value) for value in values)
    return texts if len(set(texts)) == len(set(values)) else tuple(map(str, values))


def _value(field: str, value: Any) -> str:
    if value is _UNTOLD or value == "":
        return NOTHING
    if value in (None, ()):
        return field_labels.empty(field) or NOTHING
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    return names.brief(value) if field in ("model", "data") else str(value)


def _comparable(value: Any) -> Any:
    """The value as it is whether it comes from a plan or from its stored form, which has lists for tuples."""
    return tuple(value) if isinstance(value, list) else value
