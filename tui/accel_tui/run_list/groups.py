"""Groups of runs in a list: by their data, by the search, script or bench that they are of, or by a field."""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from accel_engine.plan.monitor import is_at_most_one, is_better_lower
from accel_engine.run import RunSummary
from accel_engine.run.directory.run_paths import host_of_run
from accel_engine.run.store.series_names import VALIDATION_PREFIX, is_loss
from accel_engine.words import numbers
from accel_tui.formatting.bars import bar
from accel_tui.formatting.bench_figures import bench_figure
from accel_tui.formatting.table_columns import Column, SortKey
from accel_tui.formatting.text import base_name
from accel_tui.run_list.columns import COLUMNS, METRIC_COLUMNS, SYMBOLS, RunColumn, named_in_plan, plan_value
from accel_tui.run_list.run_filter import searched_text
from accel_tui.settings.user_settings import RUN_COLUMNS

GroupPath = tuple[str, ...]
"""What identifies a group: its name after the names of the groups that it is in."""

_ERRORS = tuple(
    prefix + error for prefix in (VALIDATION_PREFIX, "") for error in ("mean_absolute_error", "root_mean_squared_error")
)
"""Metrics of a regression in the units of its target, by which its runs are told apart more easily than by the loss."""

_SHORT_NAMES = {"mean_absolute_error": "MAE", "root_mean_squared_error": "RMSE", "r2_score": "R²", "accuracy": "acc"}

_FOLDED_AT_FIRST = ("search ", "benches")
"""Beginnings of the names of groups that are folded at first: of runs that nobody started by hand."""


def short_metric_name(series: str) -> str:
    """The name of a metric in the header of a column, such as ``val acc``."""
    name = series.removeprefix(VALIDATION_PREFIX)
    of = "val " if name != series else ""
    return of + _SHORT_NAMES.get(name, name.replace("_", " "))


class Result(NamedTuple):
    """The value by which a run is compared with others of its kind."""

    series: str
    """Its series."""
    value: float
    """The best value of the metric that counts; of another metric the last one."""
    lower: bool | None = None
    """Whether lower values are better; ``None`` if the name does not tell."""
    is_best: bool = False
    """Whether it is the best value of the run."""

    @property
    def text(self) -> str:
        """The value."""
        return bench_figure(self.series).text(self.value)

    @property
    def sort_key(self) -> SortKey | None:
        """The key to sort by: a better value is higher; ``None`` for NaN."""
        return None if self.value != self.value else (-self.value if self.lower else self.value, "")

    @property
    def title(self) -> str:
        """The title of the value, such as ``best accuracy``."""
        if self.series == "throughput":
            return bench_figure(self.series).title
        return f"best {short_metric_name(self.series)}" if self.is_best else short_metric_name(self.series)


@lru_cache(maxsize=256)
def _is_better_lower(name: str, mode: object) -> bool | None:
    """As :func:`is_better_lower`, for thousands of runs with the same metrics."""
    return is_better_lower(name, mode)


def series_to_read(monitor: str, known: Container[str]) -> str:
    """The metric that tells a person most: of a regression whose loss counts an error, else the metric that counts.

    Args:
        monitor: The metric that counts.
        known: The metrics of the run, with ``validation_`` before those of validations.
    """
    if is_loss(monitor.removeprefix(VALIDATION_PREFIX)):
        return next((name for name in _ERRORS if name in known), monitor)
    return monitor


def result_of(run: RunSummary) -> Result | None:
    """The result of a run: its best accuracy or whatever counts, the error of a regression, or else the loss."""
    metrics = run.metrics or {}
    if (name := series_to_read(run.monitor, metrics)) != run.monitor:
        return Result(name, metrics[name], lower=True)
    if run.best is None:
        return None
    mode = run.info.plan_values.get("monitor_mode") if run.info else None
    is_bench = bool(run.info and run.info.bench)
    return Result(run.monitor, run.best, _is_better_lower(run.monitor, mode), is_best=not is_bench)


def _result_by(run: RunSummary, series: str) -> Result | None:
    """The result of a run if it is by a series."""
    found = result_of(run)
    return found if found and found.series == series else None


def _of_kind(run: RunSummary) -> GroupPath:
    """The data of a run, and the search of a trial; runs that this program did not train are by how they were made."""
    if run.info is None:
        return ("unreadable",)
    if run.info.kind != "training":
        return ({"script": "scripts", "import": "imported", "bench": "benches"}[run.info.kind],)
    data = base_name(plan_value(run, "data")) or "other data"
    return (data, f"search {run.info.study}") if run.info.study else (data,)


def _of_field(name: str) -> Callable[[RunSummary], GroupPath]:
    return lambda run: (base_name(plan_value(run, name)) or f"no {name}",)


def _of_tag(run: RunSummary) -> GroupPath:
    """The first tag of a run."""
    return (f"#{run.info.annotations.tags[0]}" if run.info and run.info.annotations.tags else "no tag",)


def _of_host(run: RunSummary) -> GroupPath:
    return (host_of_run(run.directory) or "this machine",)


GROUPINGS: Mapping[str, Callable[[RunSummary], GroupPath]] = {
    "data": _of_kind,
    "model": _of_field("model"),
    "tag": _of_tag,
    "host": _of_host,
    "none": lambda _: (),
}
"""How runs can be grouped: the path of a run's group."""


@dataclass(frozen=True, slots=True)
class RunGroup:
    """A group of runs."""

    path: GroupPath
    """Its name after the names of the groups that it is in; identifies it."""
    runs: tuple[RunSummary, ...]
    """Its runs in their order, with the runs of groups in it."""
    series: str = ""
    """The metric of the results of most of its runs; empty if none has a result."""
    high: float = 0.0
    """The length of a whole bar: 1 for metrics that are at most 1, else the highest result."""
    results: tuple[Result, ...] = ()
    """The results by that metric."""
    is_of_one_kind: bool = True
    """Whether no run has a result by another metric."""
    is_folded: bool = False
    """Whether its runs are hidden."""
    running: int = 0
    """How many of its runs have an engine."""
    newest: float = 0.0
    """When the newest run was created, in seconds since the epoch."""
    ids: frozenset[str] = frozenset()
    """The ids of its runs."""
    forms: dict[str, Callable[[float], str]] = field(default_factory=dict, compare=False)
    """How :meth:`text` has written values so far, by series."""

    def text(self, series: str, value: float) -> str:
        """A value of one of its runs, in the form that all their values of the series have."""
        form = self.forms.get(series)
        if form is None:
            values = [found for run in self.runs if (found := (run.metrics or {}).get(series)) is not None]
            values += [each.value for each in self.results if each.series == series]
            form = self.forms[series] = numbers.in_one_form(bench_figure(series).text, values)
        return form(value)

    def result(self, run: RunSummary) -> Result | None:
        """The result of one of its runs, if it is by the same metric as the results of the others."""
        return _result_by(run, self.series) if self.series else None

    @property
    def best(self) -> Result | None:
        """The best result; ``None`` if there is none, or if the metric's name does not tell which way is better."""
        known = [each for each in self.results if each.lower is not None and each.value == each.value]
        if not known:
            return None
        return (min if known[0].lower else max)(known, key=lambda each: each.value)

    @property
    def note(self) -> str:
        """The number of its runs, and how many are running."""
        count = f"{len(self.runs):,}"
        return "  ".join([count, *([f"{self.running} running"] * bool(self.running))])

    @property
    def result_title(self) -> str:
        """The title of its results; of a folded group with the best result."""
        found = self.best if self.is_folded else next(iter(self.results), None)
        if found is None:
            return ""
        if not self.is_folded:
            return found.title
        return f"{'best' if found.is_best else found.title} {self.text(found.series, found.value)}"


def make_group(
    path: GroupPath, runs: Sequence[RunSummary], facts: "RunFacts | None" = None, *, is_folded: bool = False
) -> RunGroup:
    """Make a group of runs, with the metric that most of their results have."""
    found = facts.results(runs) if facts else [result_of(run) for run in runs]
    results = [each for each in found if each]
    series = Counter([each.series for each in results]).most_common(1)
    name = series[0][0] if series else ""
    of_series = tuple([each for each in results if each.series == name])
    high = max([each.value for each in of_series if each.value == each.value], default=0.0)
    if is_at_most_one(name) and high <= 1.0:
        high = 1.0
    statuses = Counter([run.status for run in runs])
    return RunGroup(
        path,
        tuple(runs),
        name,
        high,
        of_series,
        len(of_series) == len(results),
        is_folded,
        running=sum(count for status, count in statuses.items() if status and status.has_engine),
        newest=max([run.info.created if run.info else 0.0 for run in runs], default=0.0),
        ids=frozenset([run.id for run in runs]),
    )


@dataclass(frozen=True, slots=True)
class Folds:
    """Which groups are folded."""

    changed: Collection[GroupPath] = frozenset()
    """The groups that are not as they are at first."""
    are_open: bool = False
    """Whether all groups are unfolded at first, as in a filtered list: what is found is seen."""

    def has(self, path: GroupPath) -> bool:
        """Whether a group is folded."""
        return (path[-1].startswith(_FOLDED_AT_FIRST) and not self.are_open) is not (path in self.changed)


class RunFacts:
    """Facts on each run and on all runs that groups need, whatever the order.

    What is known of a run is kept until the run changes, and what is known of a group until the list does.
    """

    def __init__(self) -> None:
        self._results: dict[str, tuple[RunSummary, Result | None]] = {}
        self._paths: dict[str, tuple[RunSummary, GroupPath]] = {}
        self._texts: dict[str, tuple[RunSummary, str]] = {}
        self._grouping = ""
        self._list: tuple[object, ...] = ()
        self.groups: dict[GroupPath, RunGroup] = {}
        """The groups of the present list."""

    def begin(self, runs: Sequence[RunSummary], filter: str, grouping: str) -> None:  # noqa: A002 (the table's name)
        """Keep what is known of a list if it is the same as before, apart from its order."""
        if grouping != self._grouping:
            self._paths, self._grouping = {}, grouping
        if not self._list or self._list[0] is not runs or self._list[1:] != (filter, grouping):
            self._list = runs, filter, grouping
            self.groups = {}
        if len(self._paths) > 2 * len(runs):
            ids = {run.id for run in runs}
            self._results = {key: known for key, known in self._results.items() if key in ids}
            self._paths = {key: known for key, known in self._paths.items() if key in ids}
            self._texts = {key: known for key, known in self._texts.items() if key in ids}

    def text(self, run: RunSummary) -> str:
        """The texts of a run that are searched."""
        known = self._texts.get(run.id)
        if known is None or known[0] is not run:
            known = self._texts[run.id] = run, searched_text(run)
        return known[1]

    def result(self, run: RunSummary) -> Result | None:
        """The result of a run."""
        return self.results((run,))[0]

    def results(self, runs: Iterable[RunSummary]) -> list[Result | None]:
        """The result of each run."""
        found = []
        for run in runs:
            known = self._results.get(run.id)
            if known is None or known[0] is not run:
                known = self._results[run.id] = run, result_of(run)
            found.append(known[1])
        return found

    def members(self, runs: Iterable[RunSummary], grouping: str) -> dict[GroupPath, list[RunSummary]]:
        """The runs of each group; see :data:`GROUPINGS`."""
        path_of, paths, members = GROUPINGS[grouping], self._paths, dict[GroupPath, list[RunSummary]]()
        for run in runs:
            known = paths.get(run.id)
            if known is None or known[0] is not run:
                known = paths[run.id] = run, path_of(run)
            if known[1] in members:
                members[known[1]].append(run)
            else:
                members[known[1]] = [run]
        return members

    def group_of(self, run: RunSummary) -> RunGroup | None:
        """The group of a run in the present list."""
        known = self._paths.get(run.id)
        return self.groups.get(known[1]) if known else None


Block = tuple[RunGroup | None, Sequence[RunSummary]]
"""A group, and its runs that are in no group in it; ``None`` for a list without headings."""


def group_runs(
    runs: Iterable[RunSummary], grouping: str, folds: Folds, facts: RunFacts | None = None
) -> Sequence[Block]:
    """The parts of a list: groups, the one with the newest run first, each followed by the groups in it.

    Args:
        runs: In the order that they have within groups.
        grouping: One of :data:`GROUPINGS`.
        folds: Which groups are folded.
        facts: What is known of the list; :meth:`RunFacts.begin` was called for it.

    Returns:
        Also what is in folded groups; see :func:`visible`. Runs of a single group have no heading.
    """
    facts = facts or RunFacts()
    members = facts.members(runs, grouping)
    if len(members) < 2:
        facts.groups = {}
        return [(None, found) for found in members.values()]
    whole: dict[str, list[GroupPath]] = {}
    for path in members:
        whole.setdefault(path[0], []).append(path)
    parts = list[tuple[float, list[Block]]]()
    for paths in whole.values():
        top, inner = paths[0][:1], sorted(paths, key=len)
        group = _group(top, [run for path in inner for run in members[path]], folds, facts)
        blocks: list[Block] = [(group, members.get(top, ()))]
        blocks += [(_group(path, members[path], folds, facts), members[path]) for path in inner if path != top]
        parts.append((group.newest, blocks))
    parts.sort(key=lambda part: -part[0])
    return [block for _, blocks in parts for block in blocks]


def _group(path: GroupPath, runs: Sequence[RunSummary], folds: Folds, facts: RunFacts) -> RunGroup:
    """Make a group, with what is known of it."""
    is_folded = folds.has(path)
    if known := facts.groups.get(path):
        found = replace(known, runs=tuple(runs), is_folded=is_folded)
    else:
        found = make_group(path, runs, facts, is_folded=is_folded)
    facts.groups[path] = found
    return found


def visible(blocks: Iterable[Block]) -> Iterator[RunGroup | RunSummary]:
    """The lines that are not in folded groups."""
    hidden: GroupPath | None = None
    for group, runs in blocks:
        if group:
            if hidden and group.path[: len(hidden)] == hidden:
                continue
            hidden = group.path if group.is_folded else None
            yield group
        if not hidden:
            yield from runs


METRIC, RESULT, BAR = "metric", "result", "bar"
"""The titles of the columns that depend on the group of a run."""

_WORDS_OF_STATUS = 96
"""Cells of a list from which the status is in words."""

_OF_SEVERAL_METRICS = ("val acc", "val mae", "examples/s")
"""What stands in place of the result and its bar where a list without groups has results of several metrics."""

_BAR_WIDTH = 8


RECENT = "recent"
"""Stands for :data:`GROUPINGS` where runs have no headings, but are compared within their groups."""


def bar_colour(series: str) -> str:
    """The colour of a bar by what it measures."""
    if series == "throughput":
        return "primary"
    return "secondary" if _is_better_lower(series, None) else "success"


def run_columns(
    group_of: Callable[[RunSummary], RunGroup | None],
    title: str,
    room: int,
    chosen: Sequence[str],
    grouping: str,
    known_result: Callable[[RunSummary], Result | None] = result_of,
) -> list[RunColumn]:
    """The columns of the list of runs.

    Args:
        group_of: The group with whose results a run is compared; ``None`` if the list has several kinds of results.
        title: What the results are, if they are of one kind.
        room: Cells for them.
        chosen: The titles of those that the user has chosen; empty for those that fit.
        grouping: One of :data:`GROUPINGS`, whose field needs no column, or :data:`RECENT`.
        known_result: Returns the result of a run, which a list of thousands remembers.
    """
    known = {column.title: column for column in COLUMNS} | _of_group(
        group_of, title, known_result, names_metric=grouping == RECENT
    )
    known |= {name: replace(known[name], text=_metric_text(group_of, METRIC_COLUMNS[name])) for name in METRIC_COLUMNS}
    if room < _WORDS_OF_STATUS:
        known["status"] = replace(known["status"], width=1, header="", text=lambda run, _: SYMBOLS[run.status][0])
    known["run"] = replace(known["run"], width=16)
    known["model"] = _plan_column(known["model"], 8, 16)
    if chosen:
        return [replace(column, drop_priority=at) for at, column in enumerate(known[each] for each in chosen)]
    titles = [each for each in RUN_COLUMNS if each != grouping and not known[each].only_chosen]
    if grouping == RECENT:  # no heading says the data and the metric
        known["data"] = replace(_plan_column(known["data"], 12, 20), drop_priority=2)
        titles.remove("data")
        titles.insert(titles.index("model"), "data")
        titles.insert(titles.index(RESULT), METRIC)
    elif not title and grouping == "none":
        at = titles.index(RESULT)
        titles[at : at + 2] = _OF_SEVERAL_METRICS
    return [known[each] for each in titles]


def _plan_column(column: RunColumn, width: int, widest: int) -> RunColumn:
    """A column of a plan field that grows."""
    name = column.title
    return replace(column, width=width, widest=widest, middle=True, text=lambda run, _: named_in_plan(run, name))


def _metric_text(group_of: Callable[[RunSummary], RunGroup | None], series: str) -> Callable[[RunSummary, float], str]:
    """The last value of a metric, in the form that it has in the run's group."""

    def text(run: RunSummary, _: float) -> str:
        value = (run.metrics or {}).get(series)
        if value is None:
            return "—"
        group = group_of(run)
        return group.text(series, value) if group else numbers.metric(value)

    return text


def _of_group(
    group_of: Callable[[RunSummary], RunGroup | None],
    title: str,
    known_result: Callable[[RunSummary], Result | None],
    *,
    names_metric: bool,
) -> dict[str, RunColumn]:
    """The columns that depend on the group of a run; a column that names metrics allows results of several."""

    def result(run: RunSummary) -> Result | None:
        group = group_of(run)
        return group.result(run) if group else None

    def text(run: RunSummary, _: float) -> str:
        group, found = group_of(run), known_result(run) if names_metric else result(run)
        return group.text(found.series, found.value) if group and found else "—"

    def metric(run: RunSummary, _: float) -> str:
        return short_metric_name(found.series) if (found := known_result(run)) else ""

    def sort_key(run: RunSummary) -> SortKey | None:
        return found.sort_key if (found := known_result(run)) else None

    def drawn(run: RunSummary, _: float) -> str:
        group, found = group_of(run), result(run)
        return bar(found.value / group.high, _BAR_WIDTH) if group and found and group.high > 0 else ""

    def throughput(run: RunSummary) -> Result | None:
        return _result_by(run, "throughput")

    return {
        METRIC: Column(METRIC, 8, metric, lambda run: (0.0, metric(run, 0.0)) if known_result(run) else None),
        RESULT: Column(RESULT, max(8, len(title)), text, sort_key, right=True, descending=True, header=title or None),
        BAR: Column(
            BAR,
            _BAR_WIDTH,
            drawn,
            drop_priority=3,
            colour=lambda run: bar_colour(group.series) if (group := group_of(run)) else "",
            header="",
        ),
        "examples/s": Column(
            "examples/s",
            10,
            lambda run, _: found.text if (found := throughput(run)) else "—",
            lambda run: (found.value, "") if (found := throughput(run)) else None,
            right=True,
            drop_priority=9,
            only_chosen=True,
            descending=True,
        ),
    }
