"""The columns of the list of runs, with their texts and sort keys."""

import math
import sys
from collections.abc import Callable, Mapping

from accel_engine.plan.monitor import is_better_lower
from accel_engine.run import RunSummary, Status
from accel_engine.run.runs.listing import thinned
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.words import numbers
from accel_tui.formatting.bench_figures import bench_figure
from accel_tui.formatting.table_columns import Column, SortKey
from accel_tui.formatting.text import base_name, shorten, shorten_start, sparkline

SYMBOLS: Mapping[Status | None, tuple[str, str]] = {
    Status.QUEUED: ("○", "accent"),
    Status.STARTING: ("◌", "accent"),
    Status.RUNNING: ("●", "accent"),
    Status.PAUSED: ("‖", "warning"),
    Status.FINISHED: ("✓", "success"),
    Status.STOPPED: ("■", "warning"),
    Status.FAILED: ("✗", "error"),
    Status.LOST: ("?", "error"),
    None: ("!", "warning"),
}
"""The symbol and the theme colour of each status; ``None`` for a run that cannot be read."""

_STATUS_ORDER = {status: float(place) for place, status in enumerate(SYMBOLS)}

RunColumn = Column[RunSummary]
"""A column of a list of runs."""


def plan_value(run: RunSummary, field: str) -> str:
    """The value of a plan field or a setting as text; empty if it is unset, 0 or false, or the run cannot be read."""
    return str(run.info.setting(field) or "") if run.info else ""


def run_title(run: RunSummary) -> str:
    """A run's id; for a renamed run the beginning of the id and the name."""
    renamed = run.info.annotations.name if run.info else ""
    host, colon, name = run.id.rpartition(":")
    return f"{host}{colon}{name.partition('-')[0]} {renamed}" if renamed else run.id


def _is_better_lower(run: RunSummary) -> bool | None:
    """Whether lower values of the metric that counts are better."""
    return is_better_lower(run.monitor, run.info.plan_values.get("monitor_mode") if run.info else None)


def monitor_of(run: RunSummary, width: int) -> str:
    """The metric whose best value counts, in up to ``width`` cells; a validation's as ``val loss``."""
    if run.info and run.info.bench and run.best is not None:
        return shorten(bench_figure(run.monitor, run.info).title, width)
    name = run.monitor.removeprefix(VALIDATION_PREFIX).replace("_", " ")
    of_validation = run.monitor.startswith(VALIDATION_PREFIX)
    return shorten("" if run.best is None else f"val {name}" if of_validation else name, width)


def status_of(run: RunSummary) -> str:
    """The status; ``measured`` for a bench."""
    if run.info and run.info.bench and run.status is Status.FINISHED:
        return "measured"
    return str(run.status or "unreadable")


def has_model(run: RunSummary) -> bool:
    """Whether the run has a trained model, to bench, evaluate, export and predict with."""
    return run.info is not None and run.info.has_engine and run.checkpoint > 0


def run_steps(run: RunSummary) -> int:
    """The number of its steps; 0 for a bench, which has none."""
    return 0 if run.info and run.info.bench else run.steps


def best_value_text(run: RunSummary) -> str:
    """The best value of the metric that counts; empty if there is none."""
    if run.best is None:
        return ""
    return bench_figure(run.monitor).text(run.best) if run.info and run.info.bench else numbers.metric(run.best)


def _baseline_value(run: RunSummary) -> float | None:
    """The monitored metric of the baseline; ``None`` if unknown."""
    return run.baseline.get(run.monitor.removeprefix(VALIDATION_PREFIX))


def _status(run: RunSummary) -> str:
    """The status, or the start of what a live run waits for."""
    if run.info and run.info.waiting:
        return shorten(run.info.waiting, 10)
    return status_of(run)


def _words(text: Callable[[RunSummary], str]) -> Callable[[RunSummary], SortKey | None]:
    return lambda run: (0.0, words) if (words := text(run).lower()) else None


def _metric(title: str) -> RunColumn:
    """The column of the last value of a metric."""
    name = METRIC_COLUMNS[title]

    def value(run: RunSummary) -> float | None:
        return (run.metrics or {}).get(name)

    def text(run: RunSummary, _: float) -> str:
        return "—" if (found := value(run)) is None else numbers.metric(found)

    def sort_key(run: RunSummary) -> SortKey | None:
        found = value(run)
        return None if found is None or math.isnan(found) else (found, "")

    return Column(
        title,
        8,
        text,
        sort_key,
        right=True,
        drop_priority=_DROPPED.get(title, 0),
        only_chosen=title not in ("loss", "val loss"),
        descending=title in _HIGHER_IS_BETTER,
    )


def _plan(title: str, width: int, drop_priority: int = 0, *, only_chosen: bool = False) -> RunColumn:
    def text(run: RunSummary, _: float) -> str:
        return shorten_start(named_in_plan(run, title), width)

    return Column(
        title,
        width,
        text,
        _words(lambda run: named_in_plan(run, title)),
        drop_priority=drop_priority,
        only_chosen=only_chosen,
    )


def named_in_plan(run: RunSummary, field: str) -> str:
    """The model or the data of a run without its folder; of a function in a file, the function."""
    name = base_name(plan_value(run, field))
    return name.rpartition(".py:")[2]


def _name(run: RunSummary) -> str:
    return (run.info.name if run.info else "") or str(run.membership or "")


def _tags(run: RunSummary) -> str:
    return " ".join(run.info.annotations.tags) if run.info else ""


def _curve(run: RunSummary, width: int) -> str:
    """How the metric that counts has changed, from its lowest to its highest value; small changes look small."""
    drawn = thinned(run.curve, width)
    known = [value for value in drawn if math.isfinite(value)]
    if len(known) < 2:
        return ""
    low, high = min(known), max(known)
    span = max(high - low, _SMALL_CHANGE * max(abs(low), abs(high)), sys.float_info.min)
    return sparkline(drawn, len(drawn), high - span, high + span / 7)  # the top stays free, between two rows


def _count(number: int) -> str:
    """A number that fits seven cells."""
    return numbers.count(number) if number < 1_000_000 else numbers.compact(number)


def _batch(run: RunSummary) -> str:
    return plan_value(run, "batch_size")


_SMALL_CHANGE = 0.05  # share of a value that fills the height of a curve at least

METRIC_COLUMNS: Mapping[str, str] = {
    "loss": "loss",
    "accuracy": "accuracy",
    "val loss": "validation_loss",
    "val acc": "validation_accuracy",
    "val mae": "validation_mean_absolute_error",
    "val rmse": "validation_root_mean_squared_error",
    "val r²": "validation_r2_score",
}
"""The columns of the last values of metrics, with their series."""

_DROPPED = {"val acc": 3, "val mae": 5, "val loss": 6, "loss": 12}
_HIGHER_IS_BETTER = ("accuracy", "val acc", "val r²")


COLUMNS: tuple[RunColumn, ...] = (
    Column(
        "status",
        12,
        lambda run, _: f"{SYMBOLS[run.status][0]} {_status(run)}",
        lambda run: (_STATUS_ORDER[run.status], ""),
        colour=lambda run: SYMBOLS[run.status][1],
    ),
    Column("run", 21, lambda run, _: run_title(run), _words(run_title), widest=40, middle=True),
    Column("name", 16, lambda run, _: _name(run), _words(_name), only_chosen=True),
    _plan("model", 16, 2),
    _plan("data", 14, 11),
    _plan("strategy", 10, only_chosen=True),
    Column(
        "batch",
        6,
        lambda run, _: _batch(run),
        lambda run: (float(size), "") if (size := _batch(run)).isdecimal() else None,
        right=True,
        drop_priority=13,
    ),
    Column("tags", 12, lambda run, _: _tags(run), _words(_tags), drop_priority=10),
    Column(
        "steps",
        7,
        lambda run, _: _count(steps) if (steps := run_steps(run)) else "—",
        lambda run: (steps, "") if (steps := run_steps(run)) else None,
        right=True,
        drop_priority=8,
        descending=True,
    ),
    _metric("loss"),
    Column(
        "best",
        8,
        lambda run, _: best_value_text(run) or "—",
        lambda run: None if run.best is None else (-run.best if _is_better_lower(run) else run.best, ""),
        right=True,
        only_chosen=True,
        descending=True,
    ),
    Column(
        "baseline",
        8,
        lambda run, _: "—" if (value := _baseline_value(run)) is None else numbers.metric(value),
        lambda run: None if (value := _baseline_value(run)) is None else (value, ""),
        right=True,
        only_chosen=True,
    ),
    Column(
        "curve",
        8,
        lambda run, _: _curve(run, 8),
        lambda _: None,
        drop_priority=4,
        colour=lambda run: "secondary" if _is_better_lower(run) else "success",
    ),
    Column(
        "monitor", 12, lambda run, _: monitor_of(run, 12), _words(lambda run: monitor_of(run, 99)), only_chosen=True
    ),
    *(_metric(title) for title in METRIC_COLUMNS if title != "loss"),
    Column(
        "duration",
        8,
        lambda run, _: numbers.duration(run.seconds) if run.seconds else "—",
        lambda run: (run.seconds, "") if run.seconds else None,
        right=True,
        drop_priority=7,
    ),
    Column(
        "created",
        8,
        lambda run, now: numbers.ago(now - run.info.created) if run.info and run.info.created else "",
        lambda run: (run.info.created, "") if run.info else None,
        right=True,
        drop_priority=1,
        descending=True,
    ),
)

TITLES = tuple(column.title for column in COLUMNS)
"""The titles of all columns."""
