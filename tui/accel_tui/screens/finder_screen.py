"""Base of the screens that find a setting by measuring: a cursor on plots, and a value to take."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical

from accel_engine.measure.trial_memory import devices_of
from accel_engine.plan import Plan, isolation
from accel_engine.plan.resolved_plan import resolve
from accel_tui.formatting.runs import device_warnings
from accel_tui.formatting.table_columns import ResultTable
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.jobs.finder_plots import FinderPlot
from accel_tui.widgets.table import Table
from accel_tui.widgets.text_table import ResultTables


class FinderScreen(JobScreen):
    """Measures from when it is opened, and shows what it has found with a cursor."""

    NOUN = "the measurement"
    BINDING_GROUP_TITLE = "Find"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Take", id="find.take", tooltip="Take the value at the cursor"),
        Binding("right", "move(1)", id="find.right", tooltip="Move the cursor to the next value"),
        Binding("left", "move(-1)", id="find.left", tooltip="Move the cursor to the previous value"),
        Binding("down,tab", "select(1)", "Next", id="find.next", tooltip="Move the cursor to the next suggestion"),
        Binding("up,shift+tab", "select(-1)", id="find.previous", tooltip="Move the cursor to the previous suggestion"),
    ]

    def __init__(self, heading: str, first_options: Any) -> None:
        super().__init__(heading, first_options)
        self.at: int | None = None
        """Index of the value at the cursor, in :attr:`values`; ``None`` before there is one."""

    def compose_result(self) -> ComposeResult:
        with Vertical(id="result"):
            with Container(id="plots", classes="panel"):
                yield from self.make_plots()
            yield ResultTables(follows=True, id="tables")

    def make_plots(self) -> Sequence[FinderPlot]:
        """The plots, from left to right."""
        raise NotImplementedError

    def find(self, options: Any, on_progress: Callable[[Any], object], should_stop: Callable[[], bool]) -> Any:
        """Measure; in a thread."""
        raise NotImplementedError

    def take_result(self, result: Any) -> str:
        """Take note of what was found; returns it in a line, or why nothing was."""
        raise NotImplementedError

    @property
    def plan(self) -> Plan | None:
        """The plan that is measured; ``None`` for a run's."""
        return None

    @property
    def values(self) -> Sequence[float]:
        """The values that the cursor can be at, rising."""
        raise NotImplementedError

    @property
    def suggested(self) -> Sequence[float]:
        """The values that are suggested, the best first."""
        raise NotImplementedError

    @property
    def row_values(self) -> Sequence[float]:
        """The values of the table's rows."""
        raise NotImplementedError

    def use(self, value: float) -> None:
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Move where there are values; take one once they are found."""
        is_form = self.has_class("-form")
        match action:
            case "take":
                return False if is_form else None if self.is_working or self.at is None else True
            case "select":
                return is_form or bool(self.suggested)
            case "move":
                return bool(self.values) and not is_form
        return super().check_action(action, parameters)

    def action_move(self, by: int) -> None:
        self._go_to(0 if self.at is None else self.at + by)

    def action_select(self, by: int) -> None:
        """Move the cursor to another suggestion, or in the form to another option."""
        if self.has_class("-form"):
            self.focus_next() if by > 0 else self.focus_previous()
            return
        at = [self._nearest(each) for each in self.suggested]
        index = at.index(self.at) if self.at in at else -by
        self._go_to(at[(index + by) % len(at)])

    def action_take(self) -> None:
        if self.at is not None:
            self.use(self.chosen(self.values[self.at]))

    def chosen(self, value: float) -> float:
        """The value to use at the cursor: the suggested one, if a suggestion is at this place."""
        return next((each for each in self.suggested if self._nearest(each) == self.at), value)

    @on(FinderPlot.Pointed)
    def _point(self, event: FinderPlot.Pointed) -> None:
        event.stop()
        if self.values:
            self._go_to(self._nearest(event.value))
            if event.times > 1 and not self.is_working:
                self.action_take()

    @on(Table.Opened)
    def _choose_row(self, event: Table.Opened) -> None:
        event.stop()
        self._go_to(self._nearest(self.row_values[event.row.number]))

    def _nearest(self, value: float) -> int:
        """The index of the nearest value, on a logarithmic axis."""
        values = self.values
        return min(range(len(values)), key=lambda index: max(values[index] / value, value / values[index]))

    def _go_to(self, index: int) -> None:
        had_none = self.at is None
        self.at = min(max(index, 0), len(self.values) - 1)
        self.draw()
        if had_none:
            self.refresh_bindings()

    def run(self, job: Job, prepared: Any) -> Any:
        """Measure."""
        app = self.app
        if self.plan:
            self.warn((*device_warnings(devices_of(self.plan)), isolation.warning(resolve(self.plan))))
        return self.find(prepared, job.send, lambda: job.is_cancelled or not app.is_running)

    def begin(self, prepared: Any) -> None:
        """Forget the cursor."""
        self.at = None

    async def finish(self, found: Any) -> Sequence[str]:
        """Set the cursor to the best suggestion."""
        if found is None:
            return ()
        line = self.take_result(found)
        if self.suggested:
            self.at = self._nearest(self.suggested[0])
        self.draw()
        return (line,)

    def show_found(self, header: tuple[str, ...], rows: Sequence[tuple[str, ...]], notes: Sequence[str]) -> None:
        """Show a table, its cursor at the row of the plots' one, and notes below it, a sentence each."""
        sentences = [f"{note[:1].upper()}{note[1:]}." for note in notes]
        tables = self.query_one(ResultTables)
        tables.show([ResultTable(header, rows, note="\n".join(sentences))])
        chosen = None if self.at is None else self.chosen(self.values[self.at])
        if chosen in self.row_values:
            tables.select(self.row_values.index(chosen))
