"""The results of compared runs, a row for each, with bars, the best first."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.reactive import reactive

from accel_engine.run import RunSummary
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.words import numbers
from accel_tui.formatting.bars import bar
from accel_tui.formatting.table_columns import Column, SortKey, SortOrder, column_width
from accel_tui.run_list.columns import SYMBOLS
from accel_tui.run_list.comparison import LOSS_SERIES, have_several_losses
from accel_tui.run_list.groups import RESULT, RunGroup, bar_colour, make_group
from accel_tui.widgets.table import Table

_BAR, _WIDEST_BAR = 8, 24
_WIDEST_NAME = 40
_DIFFERS, _WIDEST_DIFFERS = 17, 100


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A compared run."""

    run: RunSummary
    """Its summary."""
    name: str
    """Its name, after the sign of its curves."""
    colour: str = ""
    """The theme colour of its curves."""
    speed: float | None = None
    """Steps per second."""
    seconds: float = 0.0
    """Seconds of training."""
    loss_function: str | None = None
    """Keras' name of its loss; ``None`` if unknown."""
    differs: str = ""
    """How its plan differs from the plan of the first run."""


class ComparedRunsTable(Table[ResultRow]):
    """The results of runs. The best result has a star."""

    DEFAULT_CSS = """
    ComparedRunsTable {
        border: round $border;
        border-title-color: $foreground;
        border-title-style: bold;
    }
    ComparedRunsTable:focus { border: round $accent; }
    """
    BINDING_GROUP_TITLE = "Results"
    opens: ClassVar[bool] = False

    order: reactive[SortOrder] = reactive(SortOrder(RESULT), repaint=False, init=False)

    differs: reactive[str] = reactive("differs from a in", repaint=False, init=False)
    """The header of how plans differ."""

    rows: reactive[tuple[ResultRow, ...]] = reactive((), repaint=False, init=False)
    """The runs."""

    def key_of(self, row: ResultRow) -> Hashable:
        return row.run.directory

    def watch_rows(self) -> None:
        """Show the runs, with the columns of which they have values."""
        group = make_group(("",), [row.run for row in self.rows])
        best = group.best
        if group.series in LOSS_SERIES and have_several_losses(row.loss_function for row in self.rows):
            best = None
        title = group.result_title or RESULT
        self.border_title = "Results"
        width = column_width("run", (row.name for row in self.rows), _WIDEST_NAME)
        speeds = [row.speed for row in self.rows if row.speed is not None]
        speed = numbers.in_one_form(numbers.compact, speeds)
        columns = _columns(group, best.value if best else None, title, width, self.differs, speed)
        needed = column_width(self.differs, (row.differs for row in self.rows), _WIDEST_DIFFERS)
        columns[-1] = replace(columns[-1], widest=needed)
        self.show_rows(self.rows, columns)

    def on_resize(self) -> None:
        self.watch_rows()
        super().on_resize()


def _columns(
    group: RunGroup, best: float | None, title: str, name_width: int, differs: str, speed: Callable[[float], str]
) -> list[Column[ResultRow]]:
    """The columns of the results of a group of runs."""

    def result(row: ResultRow, _: float) -> str:
        found = group.result(row.run)
        text = group.text(found.series, found.value) if found else ""
        return f"{text} {'★' if found.value == best else ' '}" if found else "—  "

    def result_key(row: ResultRow) -> SortKey | None:
        found = group.result(row.run)
        return found.sort_key if found else None

    def drawn(row: ResultRow, width: int) -> str:
        found = group.result(row.run)
        return bar(found.value / group.high, width) if found and group.high > 0 else ""

    return [
        Column(
            "run",
            name_width,
            lambda row, _: row.name,
            lambda row: (0.0, row.name),
            colour=lambda row: row.colour,
        ),
        Column(
            "status",
            1,
            lambda row, _: SYMBOLS[row.run.status][0],
            lambda row: (float(list(SYMBOLS).index(row.run.status)), ""),
            colour=lambda row: SYMBOLS[row.run.status][1],
            header="",
        ),
        Column(
            RESULT,
            column_width(title, (), 10) + 2,
            result,
            result_key,
            right=True,
            descending=True,
            header=f"{title}  ",
        ),
        Column(
            "bar",
            _BAR,
            lambda *_: "",
            colour=lambda row: row.colour or bar_colour(group.series),
            draw=drawn,
            drop_priority=2,
            widest=_WIDEST_BAR,
            header="",
        ),
        _metric(group, "val loss", f"{VALIDATION_PREFIX}loss", 3),
        _metric(group, "loss", "loss", 4),
        Column(
            "steps/s",
            8,
            lambda row, _: "—" if row.speed is None else speed(row.speed),
            lambda row: None if row.speed is None else (row.speed, ""),
            right=True,
            descending=True,
            drop_priority=5,
        ),
        Column(
            "duration",
            8,
            lambda row, _: numbers.duration(row.seconds) if row.seconds else "—",
            lambda row: (row.seconds, "") if row.seconds else None,
            right=True,
            drop_priority=6,
        ),
        Column(
            "differs",
            _DIFFERS,
            lambda row, _: row.differs,
            lambda row: (0.0, row.differs),
            drop_priority=1,
            header=differs,
        ),
    ]


def _metric(group: RunGroup, title: str, name: str, drop_priority: int) -> Column[ResultRow]:
    """The last value of a metric."""

    def value(row: ResultRow) -> float | None:
        return (row.run.metrics or {}).get(name)

    return Column(
        title,
        8,
        lambda row, _: "—" if (found := value(row)) is None else group.text(name, found),
        lambda row: None if (found := value(row)) is None or found != found else (found, ""),
        right=True,
        drop_priority=drop_priority,
    )
