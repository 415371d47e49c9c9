"""The columns of a list of runs: what each says of a run, and how it puts runs in order."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from accel_engine.run import RunSummary, Status
from accel_tui.formatting import figures, names, units

SYMBOLS: Mapping[Status | None, tuple[str, str]] = {
    Status.STARTING: ("◌", "accent"),
    Status.RUNNING: ("●", "accent"),
    Status.PAUSED: ("‖", "warning"),
    Status.FINISHED: ("✓", "success"),
    Status.STOPPED: ("■", "warning"),
    Status.FAILED: ("✗", "error"),
    Status.LOST: ("?", "error"),
    None: ("!", "warning"),
}
"""What stands before each status, and the theme's colour for it; ``None`` is a run that cannot be read."""

Rank = tuple[float, str]
"""What runs are put in order by: a number, or words where all numbers are the same."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list of runs.

    Attributes:
        title: Its header.
        width: In cells.
        text: What a run has in it, given the time now.
        rank: What it puts a run in order by; ``None`` for a run that has nothing there, which comes last.
        right: Whether it is aligned to the right, as numbers are.
        spare: What is left out first where there is no room: the columns with the highest number.
        falling: Whether its order begins with the highest.
    """

    title: str
    width: int
    text: Callable[[RunSummary, float], str]
    rank: Callable[[RunSummary], Rank | None]
    right: bool = False
    spare: int = 0
    falling: bool = False


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The order of a list.

    Attributes:
        column: The title of the column that gives it.
        turned: Whether it is the other way round than the column's own.
    """

    column: str = "begun"
    turned: bool = False

    @property
    def falling(self) -> bool:
        """Whether the highest comes first."""
        return _column(self.column).falling is not self.turned

    def by(self, column: str) -> "SortOrder":
        """By this column; turned, if it was by this column already."""
        return replace(self, turned=not self.turned) if column == self.column else SortOrder(column)


def ordered(runs: Iterable[RunSummary], order: SortOrder) -> tuple[RunSummary, ...]:
    """Put runs in order; those of equal rank stay as they were, and those without any come last."""
    rank = _column(order.column).rank
    ranks = [(rank(run), run) for run in runs]
    known = [(each, run) for each, run in ranks if each is not None]
    known.sort(key=lambda pair: pair[0], reverse=order.falling)
    return (*(run for _, run in known), *(run for each, run in ranks if each is None))


def plan_value(run: RunSummary, field: str) -> str:
    """What a run's plan has in a field, as text; nothing where it cannot be read."""
    return str(run.info.values.get(field) or "") if run.info else ""


def title_of(run: RunSummary) -> str:
    """A run's id; where somebody renamed it, what begins the id, and its name."""
    renamed = run.info.annotations.name if run.info else ""
    return f"{run.id.partition('-')[0]} {renamed}" if renamed else run.id


def _words(text: Callable[[RunSummary], str]) -> Callable[[RunSummary], Rank | None]:
    return lambda run: (0.0, words) if (words := text(run).lower()) else None


def _metric(title: str, width: int, name: str, spare: int = 0, *, falling: bool = False) -> Column:
    def value(run: RunSummary) -> float | None:
        return (run.metrics or {}).get(name)

    def text(run: RunSummary, _: float) -> str:
        return "—" if (found := value(run)) is None else figures.metric(found)

    def rank(run: RunSummary) -> Rank | None:
        found = value(run)
        return None if found is None or math.isnan(found) else (found, "")

    return Column(title, width, text, rank, right=True, spare=spare, falling=falling)


def _plan(title: str, width: int, spare: int) -> Column:
    def text(run: RunSummary, _: float) -> str:
        return names.end(names.brief(plan_value(run, title)), width)

    return Column(title, width, text, _words(lambda run: names.brief(plan_value(run, title))), spare=spare)


def _name(run: RunSummary) -> str:
    return (run.info.name if run.info else "") or str(run.membership or "")


def _tags(run: RunSummary) -> str:
    return " ".join(run.info.annotations.tags) if run.info else ""


def _batch(run: RunSummary) -> Rank | None:
    size = run.info.values.get("batch_size") if run.info else None
    return (float(size), "") if isinstance(size, int) else None


COLUMNS = (
    Column(
        "status",
        12,
        lambda run, _: f"{SYMBOLS[run.status][0]} {run.status or 'unreadable'}",
        lambda run: (float(list(SYMBOLS).index(run.status)), ""),
    ),
    Column("run", 21, lambda run, _: title_of(run), _words(title_of)),
    Column("name", 16, lambda run, _: _name(run), _words(_name), spare=7),
    _plan("model", 18, 3),
    _plan("data", 14, 4),
    _plan("strategy", 10, 6),
    Column("batch", 6, lambda run, _: plan_value(run, "batch_size"), _batch, right=True, spare=8),
    Column("tags", 12, lambda run, _: _tags(run), _words(_tags), spare=9),
    Column(
        "steps",
        7,
        lambda run, _: figures.compact(run.steps) if run.steps else "—",
        lambda run: (run.steps, "") if run.steps else None,
        right=True,
        falling=True,
    ),
    _metric("loss", 7, "loss"),
    _metric("accuracy", 8, "accuracy", 2, falling=True),
    _metric("val loss", 8, "validation_loss", 5),
    _metric("val acc", 7, "validation_accuracy", falling=True),
    Column(
        "took",
        8,
        lambda run, _: figures.duration(run.seconds) if run.seconds else "—",
        lambda run: (run.seconds, "") if run.seconds else None,
        right=True,
        spare=1,
    ),
    Column(
        "begun",
        8,
        lambda run, now: units.ago(now - run.info.created) if run.info else "",
        lambda run: (run.info.created, "") if run.info else None,
        right=True,
        falling=True,
    ),
)

TITLES = tuple(column.title for column in COLUMNS)
"""What a list can be put in order by."""


def fitting(room: int, gap: int) -> tuple[Column, ...]:
    """The columns that there is room for, in their order.

    Args:
        room: In cells.
        gap: Cells that each column needs beside its own.
    """
    chosen: set[str] = set()
    for column in sorted(COLUMNS, key=lambda column: column.spare):
        room -= column.width + gap
        if room < 0:
            break
        chosen.add(column.title)
    return tuple(column for column in COLUMNS if column.title in chosen)


def _column(title: str) -> Column:
    return COLUMNS[TITLES.index(title)]
