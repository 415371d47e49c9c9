"""The list of runs, sorted, filtered, with a selection; and the details of a run."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, cast

from textual import on, work
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.reactive import reactive
from textual.worker import Worker

from accel_engine.run import RunInfo, RunList, RunSummary, Status
from accel_engine.text import printable, printable_fields
from accel_tui.formatting.runs import lost_reason
from accel_tui.formatting.table_columns import SortOrder
from accel_tui.run_list.columns import COLUMNS
from accel_tui.run_list.comparison import MAX_COMPARED_RUNS as MAX_CHARTED_RUNS
from accel_tui.run_list.groups import (
    RECENT,
    RESULT,
    Folds,
    GroupPath,
    RunFacts,
    RunGroup,
    group_runs,
    make_group,
    run_columns,
    visible,
)
from accel_tui.run_list.run_filter import key_error, matches, parse_filter
from accel_tui.widgets.table import Heading, RowDetails, Table

INTERVAL = 2.0
"""Seconds between two refreshes."""

FIRST = 40
"""Number of runs that are listed first, about one screen, before all others are read."""


class RunsTable(Table[RunSummary]):
    """Runs, newest first by default, refreshed while the table is visible.

    Args:
        empty: A sentence where there are no runs.
        selectable: Whether several runs can be selected.
    """

    BINDING_GROUP_TITLE = "List of runs"

    listing: ClassVar[RunList] = RunList()
    """Shared by all tables, so that a list that is opened again is complete at once."""

    order: reactive[SortOrder] = reactive(SortOrder("created"), repaint=False, init=False)

    runs: reactive[tuple[RunSummary, ...] | None] = reactive(None, repaint=False)
    """All runs; ``None`` before they are read."""

    filter: reactive[str] = reactive("", repaint=False)
    """Filter expression; see :mod:`accel_tui.run_list.run_filter`."""

    grouping: reactive[str] = reactive("none", repaint=False)
    """How runs are grouped; see :data:`accel_tui.run_list.groups.GROUPINGS`."""

    chosen: reactive[tuple[str, ...]] = reactive((), repaint=False)
    """The titles of the columns that the user has chosen; empty for those that fit."""

    @dataclass
    class Listed(Message):
        """The runs were read; at first only the most recently written ones."""

        table: "RunsTable"
        runs: tuple[RunSummary, ...]
        whole: bool = True

    class Folded(Message):
        """Groups were folded or unfolded."""

    class Opened(Table.Opened):
        """A run should be opened."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("G", "fold_all", id="runs.fold-all", tooltip="Fold or unfold all groups"),
    ]

    def __init__(self, empty: str, *, selectable: bool = False) -> None:
        super().__init__(selectable=selectable)
        self._no_runs = empty
        self.columns = COLUMNS
        self._facts = RunFacts()
        self._selection: tuple[RunSummary, ...] = ()
        self._selection_of: tuple[object, object, object] = (None, None, None)
        self._whole: RunGroup | None = None
        self.changed_groups: set[GroupPath] = set()
        """The groups that were folded or unfolded."""
        self._changed_of_filter: set[GroupPath] = set()
        self._places: dict[Hashable, int] = {}
        self._open_when_listed = False
        self.is_partial = False
        """Whether only the most recently written runs are read."""
        self._worker: Worker[None] | None = None

    def key_of(self, row: RunSummary) -> Hashable:
        return row.id

    @property
    def keeps_row(self) -> bool:
        """Whether the cursor stays on its run: without the focus, a list beside something else keeps to the newest."""
        return self.selectable or self.has_focus

    @property
    def selected_rows(self) -> tuple[RunSummary, ...]:
        """The selected runs in list order; those hidden by the filter come last."""
        if not self.selected:
            return ()
        rows = self.selected, self.shown, self.runs
        if any(new is not old for new, old in zip(rows, self._selection_of, strict=True)):
            everything = {run.id: run for run in (*self.shown, *(self.runs or ()))}
            self._selection_of = rows
            self._selection = tuple(run for run in everything.values() if run.id in self.selected)
        return self._selection

    @property
    def hidden_selected(self) -> str:
        """How many of the selected runs the list does not show; empty if it shows all."""
        number, hidden = len(self.selected_rows), len(self.selected_rows) - len(super().selected_rows)
        return f", {f'{hidden:,} ' * (hidden < number)}hidden" if hidden else ""

    def on_mount(self) -> None:
        self.set_interval(INTERVAL, self.refresh_runs)

    def refresh_runs(self) -> None:
        """Read the runs in a thread, unless the table is invisible or a read is in progress."""
        if self.size and self.screen.is_current and (self._worker is None or self._worker.is_finished):
            self._worker = self._list()

    def watch_runs(self) -> None:
        """Show the runs that match; of recent ones no benches, which have no data to train on again."""
        terms = parse_filter(self.filter)
        reason = key_error(self.filter) or "No matching runs"
        runs = [run for run in self.runs or () if self.selectable or not (run.info and run.info.bench)]
        hint = f"{reason}. Press esc to clear the filter."
        self.empty = hint if runs else "" if self.runs is None else self._no_runs
        self.show_rows(run for run in runs if matches(run, terms, self._facts.text))

    watch_grouping = watch_chosen = watch_runs

    def watch_filter(self) -> None:
        self._changed_of_filter.clear()
        self.watch_runs()

    @property
    def _changed(self) -> set[GroupPath]:
        """The groups that were folded or unfolded; in a filtered list, they are forgotten with the filter."""
        return self._changed_of_filter if self.filter else self.changed_groups

    @property
    def _folds(self) -> Folds:
        return Folds(self._changed, are_open=bool(self.filter))

    def grouped(self, rows: tuple[RunSummary, ...]) -> tuple[tuple[RunSummary, ...], Sequence[RunSummary | Heading]]:
        """The runs in the order of their groups, and the lines with the headings of groups."""
        grouping = self.grouping if self.selectable else "data"
        self._facts.begin(self.runs or (), self.filter, grouping)
        blocks = group_runs(rows, grouping, self._folds, self._facts)
        ordered = tuple(chain.from_iterable(runs for _, runs in blocks))
        self._whole = None if self._facts.groups else make_group(("",), ordered, self._facts)
        self._choose_columns()
        if not self.selectable:
            return rows, rows
        return ordered, [self._heading_of(line) if isinstance(line, RunGroup) else line for line in visible(blocks)]

    def on_resize(self) -> None:
        self._choose_columns()
        super().on_resize()

    def _choose_columns(self) -> None:
        """Take the columns that fit the list, and what its runs are."""
        title = self._whole.result_title if self.selectable and self._whole and self._whole.is_of_one_kind else ""
        grouping = self.grouping if self.selectable else RECENT
        self.columns = run_columns(self._compared_with, title, self.room, self.chosen, grouping, self._facts.result)

    def _compared_with(self, run: RunSummary) -> RunGroup | None:
        """The group with whose results a run is compared."""
        return self._facts.group_of(run) or self._whole

    @property
    def current_group(self) -> RunGroup | None:
        """The group whose heading is under the cursor."""
        line = self.current_line
        return self._facts.groups.get(cast(GroupPath, line.key)) if isinstance(line, Heading) else None

    def _heading_of(self, group: RunGroup) -> Heading:
        """The heading of a group, with the name of its metric above the results."""
        titles = {RESULT: group.result_title}
        return Heading(group.path, group.path[-1], group.ids, group.note, len(group.path) - 1, group.is_folded, titles)

    def fold(self, heading: Heading, *, is_folded: bool) -> None:
        """Fold or unfold a group, and remember it."""
        if heading.is_folded is not is_folded:
            self._change_folds({cast(GroupPath, heading.key)})

    def _change_folds(self, groups: set[GroupPath]) -> None:
        self._changed.symmetric_difference_update(groups)
        self.watch_runs()
        if not self.filter:
            self.post_message(self.Folded())

    def action_fold_all(self) -> None:
        """Fold all groups, or unfold all if all are folded."""
        groups = self._facts.groups.values()
        unfolded = {group.path for group in groups if not group.is_folded}
        self._change_folds(unfolded or {group.path for group in groups})

    def watch_selected(self) -> None:
        self._places = {run.id: place for place, run in enumerate(self.selected_rows)}
        super().watch_selected()

    def mark_colour(self, row: RunSummary) -> str:
        """The colour that the run has in a comparison of the selected runs."""
        place = self._places.get(row.id) if 1 < len(self._places) <= MAX_CHARTED_RUNS else None
        if place is None:
            return "mark"
        from accel_tui.widgets.chart_panels.compare_charts import style_of  # the first rows are shown without it

        return style_of(place)

    def forget(self, known: object) -> None:
        """Deselect runs that are gone; those hidden by the filter stay selected."""
        super().forget(run.id for run in self.runs or () if self.selected)

    def action_open(self) -> None:
        """Open the current run; a press before the runs are read takes effect then."""
        self._open_when_listed = self.runs is None
        super().action_open()

    @on(Resize)
    def _begin(self) -> None:
        if self.runs is None:
            self.runs = self.listing.runs or None  # the last known runs, until they are read again
            self.refresh_runs()

    @work(thread=True, exit_on_error=False, group="runs")
    def _list(self) -> None:
        if not self.listing.runs and not self.listing.refresh(FIRST):
            self.post_message(self.Listed(self, self.listing.runs, whole=False))
        self.listing.refresh()
        self.post_message(self.Listed(self, self.listing.runs))

    @on(Listed)
    def _update_runs(self, event: Listed) -> None:
        begins = self.is_partial and self._cursor <= 1
        self.is_partial = not event.whole
        self.runs = event.runs
        if begins:
            self.go_to_first_row()  # the user did not choose the first of a partial list
        self.repaint_changed()  # relative times change even if nothing else does
        if self._open_when_listed:
            self.action_open()


class SelectedRun(RowDetails):
    """Title, note and tags, outcome, command, and directory of a run."""

    def __init__(self) -> None:
        super().__init__()
        self._run: RunSummary | None = None
        self._is_stale = False

    def show_run(self, run: RunSummary | None) -> None:
        """Show the details of a run; while they are hidden, once they are shown."""
        if run is self._run:
            return
        self._run, self._is_stale = run, True
        if self.display:
            self.on_show()

    def on_show(self) -> None:
        """Show what was not shown while there was no room."""
        if self._is_stale:
            self._is_stale = False
            self.update(_detail(printable_fields(self._run)))


def _detail(run: RunSummary | None) -> Content:
    if run is None:
        return Content("")
    where = Content.styled(printable(str(run.directory)), "$text-disabled")
    if run.info is None:
        return Content("\n").join([Content.styled(run.problem, "$text-warning"), where])
    info, plan = run.info, run.info.plan
    lines = [
        Content.assemble(
            (info.title, "bold"),
            (f"  {run.membership}" if run.membership else "", "$text-warning"),
            (f"  on {info.host}" if info.host else "", "$text-muted"),
            ("".join(f"  #{tag}" for tag in info.annotations.tags), "$accent"),
            (f"  {info.annotations.note}" if info.annotations.note else "", ""),
        )
    ]
    if info.waiting:
        lines.append(Content.styled(info.waiting.waiting, "$text-warning"))
    elif info.status is Status.LOST:
        lines.append(Content.styled(_lost(info, run.checkpoint), "$text-error"))
    elif run.reason:
        lines.append(Content.styled(run.reason, "$text-error" if info.status is Status.FAILED else "$text-muted"))
    again = ("$ " + plan.command(), "") if plan else ("the plan cannot be read on this machine", "$text-warning")
    if info.script:
        again = (f"$ {info.script}", "")
    if info.source:
        again = (f"imported from {info.source.path} ({info.source.format})", "$text-muted")
    if info.bench:
        again = (f"{info.made}, {info.bench}", "$text-muted")
    return Content("\n").join([*lines, Content.assemble(again), where])


def _lost(info: RunInfo, checkpoint: int) -> str:
    onwards = f" R continues from the checkpoint at step {checkpoint:,}." if info.plan and checkpoint else ""
    if info.script:
        onwards = " To continue, run the script again."
    return f"Lost: {lost_reason(info)}.{onwards}"
