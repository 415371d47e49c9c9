"""Compares runs: the differences of their plans, and their results."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accel_engine.hosts.carried_files import carried_name
from accel_engine.plan import DEFAULTS, PATH_FIELDS
from accel_engine.plan.monitor import is_better_lower
from accel_engine.plan.task_choices import LOSS_ALIASES
from accel_engine.run import RunInfo, RunSummary
from accel_engine.run.store.series_names import BATCH_SIZE, LEARNING_RATE, VALIDATION_PREFIX
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.bench_figures import bench_figure
from accel_tui.formatting.text import base_name
from accel_tui.plan import field_labels
from accel_tui.run_list.columns import status_of
from accel_tui.run_state.state import RunState

MAX_COMPARED_RUNS = 8
"""The maximum number of runs in a comparison, limited by the colours of a chart."""

MOST_RUNS_OF_BAND = 1000
"""The maximum number of runs whose curves are shown as a band."""

NO_VALUE = "—"
"""Shown where a run has no value."""

_UNKNOWN: Any = object()
"""The value of a field that is not known of a run."""

LOSS_SERIES = frozenset({"loss", f"{VALIDATION_PREFIX}loss"})
"""The series whose values depend on the loss function."""

_TITLES = frozenset({"name"})  # shown as column titles

_EMPTY = frozenset({_UNKNOWN, None, "", ()})

_MODELS = 3
"""How many models of a script are named."""

_CONFIG = "config"
"""The field with a script's own settings, each of which is compared under its name after this prefix and a dot, or as
the plan field of its name if that is unknown."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run of a comparison."""

    run: RunSummary
    """Its summary."""
    state: RunState
    """Its state from its events and chunks."""

    @property
    def title(self) -> str:
        """Its name after its host, or its id if it has none; a bench's after the code of its id, as these are long."""
        info = self.run.info
        if info and info.bench and not info.annotations.name:
            return f"{self.run.id.partition('-')[0]} {info.name}"
        host, colon, _ = self.run.id.rpartition(":")
        return f"{host}{colon}{info.name}" if info and info.name else self.run.id

    @property
    def plan(self) -> Mapping[str, Any]:
        """Its plan, with defaults for fields added later; without an engine, the known fields and its own settings."""
        info = self.run.info
        if info is None or info.has_engine:
            return {**DEFAULTS, **(info.plan_values if info else {})}
        values = {**info.plan_values, **_models(self.state, info.plan_values)}
        config = values.pop(_CONFIG, None)
        settings = config.items() if isinstance(config, dict) else ()
        known = {name for name in DEFAULTS if values.get(name)}
        return values | {
            name if name in DEFAULTS and name not in known else f"{_CONFIG}.{name}": value for name, value in settings
        }

    def value_of(self, series: str) -> float | None:
        """The value of a series that counts as its result: of training, else of validation; ``None`` if unknown."""
        if series == THROUGHPUT:
            return self.speed
        metrics = self.run.metrics or {}
        return metrics.get(series, metrics.get(VALIDATION_PREFIX + series))

    @property
    def kind_of_value(self) -> str:
        """The kind of the values of training: of the last epoch, or the last step."""
        return "last epoch" if self.run.of_epoch else "last step"

    @property
    def speed(self) -> float | None:
        """Steps per second: of the last engine if it has ended, else the recent rate."""
        ended = self.state.ended
        return (ended.steps_per_second or None) if ended else self.state.steps_per_second

    @property
    def seconds(self) -> float:
        """Seconds of training, summed over all engines."""
        return max(self.run.seconds, self.state.elapsed(self.state.step_rate.ended) or 0.0)

    @property
    def loss_function(self) -> str | None:
        """Keras' name of the loss that it is trained with; ``None`` if unknown."""
        name = self.state.built.loss if self.state.built else ""
        return LOSS_ALIASES.get(name, name) or None

    @property
    def devices(self) -> str:
        """Its devices, e.g. ``2 x NVIDIA H100``."""
        if self.state.devices is None:
            return ""
        counts = Counter(each.description or each.name for each in self.state.devices.devices)
        return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in counts.items())


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A row of a comparison."""

    label: str
    """Its name."""
    values: tuple[Any, ...]
    """One value per run; ``None`` if a run has none."""
    texts: tuple[str, ...]
    """The formatted values."""
    best: frozenset[int] = frozenset()
    """The indices of the runs with the best value, if values can be ranked."""
    key: str = ""
    """Its name in JSON, if that is not the label."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of runs."""

    runs: tuple[ComparedRun, ...]
    """The runs."""
    results: tuple[ComparedRow, ...]
    """The rows of their results."""
    plan: tuple[ComparedRow, ...]
    """The rows of plan fields that differ."""
    equal: Mapping[str, Any]
    """The equal fields that are not at their default, by name."""
    at_default: Mapping[str, Any]
    """The fields that are known to be at their default in all runs, by name; empty if one has no engine."""

    @property
    def defaults(self) -> int:
        """The number of fields at their default in all runs."""
        return len(self.at_default)

    @property
    def equal_rows(self) -> tuple[ComparedRow, ...]:
        """The rows of the equal fields, fields at their default last."""
        return tuple(
            _plan_row(name, [value] * len(self.runs)) for name, value in {**self.equal, **self.at_default}.items()
        )

    @property
    def kind_of_values(self) -> str:
        """The kind of the values of training in all runs, such as ``last epoch``; empty if the runs differ in that."""
        kinds = {each.kind_of_value for each in self.runs}
        return kinds.pop() if len(kinds) == 1 and not is_bench(self.runs) else ""

    def differences(self, at: int) -> str:
        """The differences between the plan of a run and the plan of the first."""
        differing = (row for row in self.plan if row.texts[at] != row.texts[0])
        return ", ".join(f"{row.label} {row.texts[at]}" for row in differing) or "nothing"

    @property
    def summary(self) -> str:
        """The equal fields in a sentence."""
        equal = ", ".join(f"{field_labels.label(name)} {_value(name, value)}" for name, value in self.equal.items())
        rest = f"{numbers.counted(self.defaults, 'field')} at default" if self.defaults else ""
        known = "; ".join(filter(None, (equal, rest)))
        return f"Equal: {known}." if known else "No plan fields in common are known."


def compare_runs(runs: Sequence[ComparedRun]) -> Comparison:
    """Find the fields of the plans, and the results, in which runs are equal or differ."""
    plans = [compared.plan for compared in runs]
    field_names = [name for name in dict.fromkeys(name for plan in plans for name in plan) if name not in _TITLES]
    columns = {name: tuple(_comparable(plan.get(name, _UNKNOWN)) for plan in plans) for name in field_names}
    columns |= {name: _same_files(columns[name]) for name in PATH_FIELDS if name in columns}
    if any(compared.run.info is None or compared.run.info.has_engine for compared in runs):
        defaults = {name: _comparable(DEFAULTS.get(name)) for name in field_names}
    else:  # scripts have no defaults
        columns = {name: values for name, values in columns.items() if not _EMPTY.issuperset(values)}
        defaults = dict.fromkeys(columns, _UNKNOWN)
    # A field that is not known is no difference to its default, but is not said to be at it.
    known = {
        name: {defaults[name] if each is _UNKNOWN else each for each in values} for name, values in columns.items()
    }
    equal_fields = {name: values.pop() for name, values in known.items() if len(values) == 1}
    equal = {name: value for name, value in equal_fields.items() if value != defaults[name]}
    differing = [_plan_row(name, values) for name, values in columns.items() if name not in equal_fields]
    return Comparison(
        tuple(runs),
        tuple(_results(runs)),
        tuple(differing),
        equal,
        {name: value for name, value in equal_fields.items() if name not in equal and _UNKNOWN not in columns[name]},
    )


def _same_files(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values of a field with a path, in which a file that was carried to hosts is the one here of its name.

    Of several contents of that name it is unknown which one is here.
    """
    carried = {value: carried_name(value) for value in values if isinstance(value, str)}
    contents = {name for name in carried.values() if name}
    others = [value for value, name in carried.items() if not name]
    known: dict[str, str] = {}
    for content in contents:
        name = content.partition("/")[2]
        here = [value for value in others if value == name or value.endswith(f"/{name}")]
        is_alone = sum(each.partition("/")[2] == name for each in contents) == 1
        known[content] = here[0] if is_alone and len(here) == 1 else content
    return tuple(known.get(carried.get(value, ""), value) if isinstance(value, str) else value for value in values)


def find_mixed_kinds(runs: Sequence[RunInfo]) -> str:
    """Why runs cannot be compared: some are benches, and others are not. Empty if they can."""
    benches = [run.id for run in runs if run.bench]
    others = [run.id for run in runs if not run.bench]
    if not benches or not others:
        return ""
    return f"{benches[0]} is a bench of inference, by batch size, and {others[0]} is not: compare one kind of run"


def compared_series_names(runs: Sequence[ComparedRun]) -> list[str]:
    """The series of all runs: per-step series in the order of the runs, then series of validations only."""
    declared = [name for compared in runs for name in (compared.state.built.series if compared.state.built else ())]
    recorded = [name for compared in runs for name in compared.state.curves]
    validated = [name for compared in runs for name in compared.state.validation]
    left_out = {LEARNING_RATE, *(info.x_series for compared in runs if (info := compared.run.info))}
    return [name for name in dict.fromkeys([*declared, *recorded, *validated]) if name not in left_out] or ["loss"]


def _models(state: RunState, values: Mapping[str, Any]) -> dict[str, str]:
    """The models of a script's parts, if they differ; empty if its parts are not named after models."""
    names = list(dict.fromkeys(part.started.name for part in state.parts if not part.started.parsed))
    if len(names) < 2 or names[0] != values.get("model"):
        return {}
    return {"model": numbers.listed(names, _MODELS)}


def _status(run: RunSummary) -> str:
    return (run.info.waiting if run.info else None) or status_of(run)


def _results(runs: Sequence[ComparedRun]) -> Iterable[ComparedRow]:
    yield _row("status", [_status(compared.run) for compared in runs], str)
    if is_bench(runs):
        yield from _figures(runs)
        return
    yield _row("steps", [compared.run.steps for compared in runs], "{:,}".format)
    if have_several_losses(functions := [compared.loss_function for compared in runs]):
        yield _row("loss function", functions, str)
    examples = [built.validation_examples if (built := compared.state.built) else None for compared in runs]
    if len({*examples} - {None}) > 1:
        yield _row("validation examples", examples, "{:,}".format)
    for name in dict.fromkeys(name for compared in runs for name in compared.run.metrics or {}):
        yield _metric_row(runs, name)
    baselines = [compared.run.baseline for compared in runs]
    for name in dict.fromkeys(name for each in baselines for name in each):
        label = f"baseline {name.replace('_', ' ')}"
        yield _row(label, [each.get(name) for each in baselines], numbers.metric)
    if any(compared.run.baseline_name for compared in runs):
        said = [printable_line(compared.run.baseline_name) or None for compared in runs]
        yield _row("baseline", said, str)
    yield _row("steps/s", [compared.speed for compared in runs], numbers.compact, highest=True)
    yield _row("duration", [compared.seconds or None for compared in runs], numbers.duration)
    if any(compared.state.live for compared in runs):
        yield _row(
            "remaining",
            [compared.state.remaining if compared.state.live else None for compared in runs],
            numbers.duration,
        )
    yield _row("devices", [compared.devices or None for compared in runs], str)


def have_several_losses(functions: Iterable[str | None]) -> bool:
    """Whether the known ones of some loss functions differ: then none of their values is the best."""
    return len({*functions} - {None}) > 1


def kinds_of_value(runs: Sequence[ComparedRun], series: str) -> str:
    """The kind of the values of training of a series, such as ``last epoch``; empty if no run has one."""
    return " or ".join(dict.fromkeys(each.kind_of_value for each in runs if series in (each.run.metrics or {})))


def _metric_row(runs: Sequence[ComparedRun], name: str) -> ComparedRow:
    """The row of a metric; its values of training say what they are where the runs differ in that."""
    modes = {
        each.run.info.plan_values.get("monitor_mode") for each in runs if each.run.info and each.run.monitor == name
    }
    lowers = {is_better_lower(name, mode) for mode in modes or {None}}
    lower = lowers.pop() if len(lowers) == 1 else None  # runs may disagree
    if name in LOSS_SERIES and have_several_losses(each.loss_function for each in runs):
        lower = None
    row = _row(
        name.replace("validation_", "val ").replace("_", " "),
        [(each.run.metrics or {}).get(name) for each in runs],
        numbers.metric,
        None if lower is None else not lower,
    )
    if name.startswith(VALIDATION_PREFIX) or len({each.kind_of_value for each in runs}) < 2:
        return row
    texts = zip(row.texts, runs, strict=True)
    return replace(
        row, texts=tuple(text if text == NO_VALUE else f"{text} ({each.kind_of_value})" for text, each in texts)
    )


def is_bench(runs: Sequence[ComparedRun]) -> bool:
    """Whether all runs are benches of inference."""
    return all(compared.run.info is not None and compared.run.info.bench for compared in runs)


def _figures(runs: Sequence[ComparedRun]) -> Iterable[ComparedRow]:
    """The figures of the best batch size of each bench."""
    metrics = [compared.run.metrics or {} for compared in runs]
    for name in dict.fromkeys(name for each in metrics for name in each):
        lower = None if name == BATCH_SIZE else is_better_lower(name)
        highest = None if lower is None else not lower
        shown = bench_figure(name, runs[0].run.info)
        row = _row(shown.title, [each.get(name) for each in metrics], shown.text, highest)
        yield replace(row, key=name)
    yield _row("duration", [compared.seconds or None for compared in runs], numbers.duration)


def _row(label: str, values: Sequence[Any], text: Callable[[Any], str], highest: bool | None = None) -> ComparedRow:
    """Make a row; ``highest`` says whether the highest or the lowest value is best, ``None`` for neither."""
    known = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    text = numbers.in_one_form(text, known)
    texts = tuple(NO_VALUE if value is None else text(value) for value in values)
    if highest is None or len(set(known)) < 2:
        return ComparedRow(label, tuple(values), texts)
    best = max(known) if highest else min(known)
    return ComparedRow(
        label, tuple(values), texts, frozenset(index for index, value in enumerate(values) if value == best)
    )


def _plan_row(field: str, values: Sequence[Any]) -> ComparedRow:
    known = tuple(None if value is _UNKNOWN else value for value in values)
    return ComparedRow(field_labels.label(field), known, _values(field, values))


def _values(field: str, values: Sequence[Any]) -> tuple[str, ...]:
    """Format values, in full where the short forms would be equal."""
    texts = tuple(_value(field, value) for value in values)
    if len(set(texts)) == len(set(values)):
        return texts
    return tuple(NO_VALUE if value is _UNKNOWN else str(value) for value in values)


def _value(field: str, value: Any) -> str:
    if value is _UNKNOWN or value == "":
        return NO_VALUE
    if value in (None, ()):
        return field_labels.placeholder(field) or NO_VALUE
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    return base_name(value) if field in ("model", "data") else str(value)


def _comparable(value: Any) -> Any:
    """Normalize a value: stored plans have lists in place of tuples, and what scripts tell may be anything."""
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    return str(value) if isinstance(value, dict) else value
