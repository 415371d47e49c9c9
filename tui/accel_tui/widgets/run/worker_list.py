"""The workers of a distributed run."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import median

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from accel_engine.devices.device_types import Device
from accel_engine.events import Outcome, Phase
from accel_engine.hosts.reading import HostReading
from accel_engine.words import numbers
from accel_tui.formatting.table_columns import Column, SortKey
from accel_tui.run_list.host_rows import HostView
from accel_tui.run_state.state import RunState
from accel_tui.run_state.worker_follower import WorkerStatus, reduction_name, workers_of
from accel_tui.widgets.device_heat_map import DeviceHeatMap
from accel_tui.widgets.run.phase_line import phase
from accel_tui.widgets.run.run_view import RunText, RunView
from accel_tui.widgets.styled_text import TextSpan
from accel_tui.widgets.table import Table

_ACTIVE_PHASES = (Phase.TRAINING, Phase.VALIDATING, Phase.CHECKPOINTING)
"""Phases that all workers share, so that they are shown as "active"."""

_UNSEEN = 1
"""Urgency of a worker in the table that only another machine shows."""

_ALIKE = 0.02
"""Difference of the shares of all workers below which no worker is named."""

_UNEVEN = 0.2
"""Difference of the shares of two workers above which one holds up the others."""

_NAMED = 3
"""Maximum number of workers in one status that are named."""


class WorkerSummary(RunText):
    """A line with the number of workers and their status, problems first; hidden for a single worker."""

    DEFAULT_CSS = """
    WorkerSummary {
        display: none;
        height: 1;
        padding: 0 1;
    }
    """

    def set_state(self, state: RunState) -> None:
        """Set the state; shown if there are other workers."""
        self.display = _has_others(state)
        super().set_state(state)

    def build(self, state: RunState) -> Content:
        """Workers grouped by status."""
        workers = workers_of(state)
        if not workers:
            return Content("")
        groups: dict[tuple[int, Content], list[WorkerStatus]] = {}
        for worker in workers:
            groups.setdefault((_urgency(worker), _brief_status(worker)), []).append(worker)
        by = f", all-reduce {reduction_name(state.workers_met)}" if state.workers_met else ""
        parts = [Content.styled(f"{numbers.counted(len(workers), 'worker')}{by}", "$text-muted")]
        for urgency, status in sorted(groups, key=lambda key: key[0]):
            members = groups[urgency, status]
            parts.append(Content.assemble(status, (": ", "$text-muted"), _named(members, len(workers))))
        return Content("   ").join(parts).truncate(self.size.width, ellipsis=True)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker in the table."""

    number: int
    """Its place among the workers."""
    name: str
    """Such as ``worker 1``."""
    urgency: int
    """Where it stands in the list: the lowest is the first."""
    status: str
    """Its status in a word or two."""
    colour: str
    """The theme colour of the status."""
    host: str
    """Its machine; empty if unknown."""
    cpu: float | None
    """Use of the CPU by its process, in percent of one core; ``None`` if unknown."""
    memory: float | None
    """Bytes of its process; ``None`` if unknown."""
    details: Content
    """All that is known of it."""


class WorkerHeatMap(DeviceHeatMap):
    """The use of each worker's devices, in a line for each worker."""

    @property
    def _most_lines(self) -> int:
        """A line for each worker, as far as half the screen has."""
        return min(1 + len(self._views), super()._most_lines)


class WorkerTable(Table[WorkerRow]):
    """The workers, problems first."""

    BINDING_GROUP_TITLE = "Workers"
    opens = False

    def key_of(self, row: WorkerRow) -> Hashable:
        return row.name

    @property
    def keeps_row(self) -> bool:
        """Whether the cursor stays on its worker: without the focus, the first problem is shown."""
        return self.has_focus


class WorkerList(RunView, Vertical):
    """The workers, and what is known of the current one; hidden for a single worker."""

    DEFAULT_CSS = """
    WorkerList {
        height: auto;
        margin-top: 1;
        & > WorkerTable { height: auto; max-height: 12; }
        & > WorkerHeatMap { padding: 0 1; }
        & > #ranks { height: auto; padding: 0 1; margin-bottom: 1; }
        & > #worker { height: auto; padding: 0 1; }
    }
    """

    _rows: tuple[WorkerRow, ...] = ()

    has_workers: reactive[bool] = reactive(False, recompose=True)
    """Whether there are other workers."""

    def compose(self) -> ComposeResult:
        """Compose nothing for the single worker of most runs."""
        if self.has_workers:
            yield Static(Content.styled("Workers", "bold $primary"))
            yield WorkerHeatMap()
            yield Static(id="ranks", markup=False)
            yield WorkerTable()
            yield Static(id="worker", markup=False)

    def watch_has_workers(self) -> None:
        """Fill the parts once they are made."""
        self.call_after_refresh(self.update_view)

    def set_state(self, state: RunState) -> None:
        """Set the state; shown if there are other workers."""
        self.display = self.has_workers = _has_others(state)
        super().set_state(state)

    def update_view(self) -> None:
        """Show workers that have changed."""
        if not self.in_sight or not self.query(WorkerTable):
            return
        workers = workers_of(self.state)
        views = [view for worker in workers if (view := _view(worker)).meters]
        heat_map, ranks, told = self.query_one(WorkerHeatMap), self.query_one("#ranks", Static), _ranks(workers)
        heat_map.display, ranks.display = bool(views), bool(told)
        heat_map.show(views, "")
        ranks.update(told)
        rows = tuple(sorted(map(_row, count(), workers), key=lambda row: row.urgency))
        if rows != self._rows:
            self._rows = rows
            self.query_one(WorkerTable).show_rows(rows, COLUMNS)

    @on(WorkerTable.Moved)
    def _describe(self) -> None:
        current = self.query_one(WorkerTable).current
        self.query_one("#worker", Static).update(current.details if current else "")


def _key(value: float | None) -> SortKey | None:
    return None if value is None else (value, "")


COLUMNS: tuple[Column[WorkerRow], ...] = (
    Column("worker", 8, lambda row, _: row.name, lambda row: _key(row.number), colour=lambda _: "accent", widest=11),
    Column(
        "status",
        10,
        lambda row, _: row.status,
        lambda row: (row.urgency, row.status),
        colour=lambda row: row.colour,
        widest=28,
    ),
    Column("machine", 8, lambda row, _: row.host, lambda row: (0.0, row.host), drop_priority=3, widest=24),
    Column(
        "CPU",
        5,
        lambda row, _: "" if row.cpu is None else f"{row.cpu:.0f}%",
        lambda row: _key(row.cpu),
        right=True,
        descending=True,
        drop_priority=1,
    ),
    Column(
        "memory",
        8,
        lambda row, _: "" if row.memory is None else numbers.size(row.memory),
        lambda row: _key(row.memory),
        right=True,
        descending=True,
        drop_priority=2,
    ),
)
"""The columns of workers."""


def _has_others(state: RunState) -> bool:
    return state.workers_met is not None or bool(state.workers)


def _urgency(worker: WorkerStatus) -> int:
    """Sort key: lost workers come before workers that failed in consequence."""
    if worker.state is None:
        return 3
    return 0 if worker.state.lost else 1 if _has_failed(worker.state) else 2


def _has_failed(state: RunState) -> bool:
    return state.lost or (state.has_ended and state.ended is not None and state.ended.outcome is Outcome.FAILED)


def _is_active(state: RunState) -> bool:
    is_waiting = state.info is not None and state.info.waiting
    return state.live and not is_waiting and state.phase is not None and state.phase.phase in _ACTIVE_PHASES


def _brief_status(worker: WorkerStatus) -> Content:
    return Content.styled(*_status_span(worker))


def _status_span(worker: WorkerStatus) -> TextSpan:
    """The status of a worker, brief."""
    if worker.state is None:
        return "not visible from this machine", "$text-muted"
    if _is_active(worker.state):
        return "● active", "bold $success"
    return phase(worker.state, 0.0, brief=True)[0]


def _named(workers: list[WorkerStatus], count: int) -> str:
    if len(workers) == count:
        return "all"
    if len(workers) > _NAMED:
        return numbers.counted(len(workers), "worker")
    return ", ".join(worker.name for worker in workers)


def _row(number: int, worker: WorkerStatus) -> WorkerRow:
    text, style = _status_span(worker) if worker.state else ("not visible here", "$text-muted")
    colour = style.rpartition("$")[2]
    cpu, memory = _engine(worker.state) if worker.state else (None, None)
    return WorkerRow(
        number,
        worker.name,
        _urgency(worker) if worker.state else _UNSEEN,
        text,
        "note" if colour == "text-muted" else colour,
        worker.host,
        cpu,
        memory,
        _details(worker),
    )


def _details(worker: WorkerStatus) -> Content:
    state = worker.state
    status = _brief_status(worker) if state is None or _is_active(state) else Content.assemble(*phase(state, state.now))
    lines = [Content.assemble((f"{worker.name}  ", "$accent"), status)]
    if state and state.has_ended and state.ended and state.ended.reason:
        lines.append(Content.styled(state.ended.reason, "$text-error" if _has_failed(state) else ""))
    if where := ", ".join(filter(None, (worker.host, worker.address))):
        lines.append(Content.styled(where, "$text-muted"))
    if state is None:
        lines.append(Content.styled(f"on its machine:\naccel-tui watch {worker.run}", "$text-muted"))
    return Content("\n").join(lines)


def _view(worker: WorkerStatus) -> HostView:
    """A worker's devices as a row of a heat map; none once it has ended, or if it is not visible here."""
    meters = worker.state.meters if worker.state and worker.state.live else {}
    devices = tuple(Device(name, name.partition(":")[0], name) for name in sorted(meters))
    return HostView(HostReading(worker.name, "connected", devices=devices), meters)


def _ranks(workers: Sequence[WorkerStatus]) -> Content:
    """The slowest, the median and the fastest worker by how long its steps wait for batches.

    All workers take a step together, so that its time says nothing of one.
    """
    shares = [(share, each.name) for each in workers if each.state and (share := _input_share(each.state)) is not None]
    if len(shares) < 2:
        return Content("")
    shares.sort()
    (least, fastest), (most, slowest) = shares[0], shares[-1]
    middle = median(share for share, _ in shares)
    if most - least < _ALIKE:
        return Content.styled(f"steps wait for input: {middle:.0%} on all workers", "$text-muted")
    words = f"steps wait for input: slowest {slowest} {most:.0%}, median {middle:.0%}, fastest {fastest} {least:.0%}"
    return Content.styled(words, "$text-warning" if most - least >= _UNEVEN else "$text-muted")


def _input_share(state: RunState) -> float | None:
    """The share of the time of its last steps in which a worker waited for batches; ``None`` if unknown."""
    spent = state.time.spent if state.time else {}
    steps = spent.get("steps", 0.0)
    return min(spent.get("input", 0.0) / steps, 1.0) if steps > 0 else None


def _engine(state: RunState) -> tuple[float | None, float | None]:
    """CPU and memory use of a worker's own process."""
    meter = None if state.has_ended else state.meters.get("cpu:0")
    return (meter.reading("engine_cpu").value, meter.reading("engine_memory").value) if meter else (None, None)
