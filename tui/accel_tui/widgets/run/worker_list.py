"""The workers of a distributed run."""

from textual.content import Content

from accel_engine.events import Outcome, Phase
from accel_engine.words import numbers
from accel_tui.run_state.state import RunState
from accel_tui.run_state.worker_follower import WorkerStatus, reduction_name, workers_of
from accel_tui.widgets.run.phase_line import phase
from accel_tui.widgets.run.run_view import RunText

_ACTIVE_PHASES = (Phase.TRAINING, Phase.VALIDATING, Phase.CHECKPOINTING)
"""Phases that all workers share, so that they are shown as "active"."""

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


class WorkerList(RunText):
    """A paragraph per worker with status, machine and resource use; hidden for a single worker."""

    DEFAULT_CSS = """
    WorkerList {
        height: auto;
        margin-top: 1;
    }
    """

    def set_state(self, state: RunState) -> None:
        """Set the state; shown if there are other workers."""
        self.display = _has_others(state)
        super().set_state(state)

    def build(self, state: RunState) -> Content:
        """The heading and the paragraphs."""
        heading = Content.styled("Workers", "bold $primary")
        return Content("\n").join([heading, *(_paragraph(worker) for worker in workers_of(state))])


def _has_others(state: RunState) -> bool:
    return state.workers_met is not None or bool(state.workers)


def _urgency(worker: WorkerStatus) -> int:
    """Sort key: lost workers come before those that failed in consequence."""
    if worker.state is None:
        return 3
    return 0 if worker.state.lost else 1 if _has_failed(worker.state) else 2


def _has_failed(state: RunState) -> bool:
    return state.lost or (state.has_ended and state.ended is not None and state.ended.outcome is Outcome.FAILED)


def _is_active(state: RunState) -> bool:
    is_waiting = state.info is not None and state.info.waiting
    return state.live and not is_waiting and state.phase is not None and state.phase.phase in _ACTIVE_PHASES


def _brief_status(worker: WorkerStatus) -> Content:
    """The status of a worker, brief."""
    if worker.state is None:
        return Content.styled("not visible from this machine", "$text-muted")
    if _is_active(worker.state):
        return Content.styled("● active", "bold $success")
    return Content.assemble(*phase(worker.state, 0.0, brief=True))


def _named(workers: list[WorkerStatus], count: int) -> str:
    if len(workers) == count:
        return "all"
    if len(workers) > _NAMED:
        return numbers.counted(len(workers), "worker")
    return ", ".join(worker.name for worker in workers)


def _paragraph(worker: WorkerStatus) -> Content:
    state = worker.state
    status = _brief_status(worker) if state is None or _is_active(state) else Content.assemble(*phase(state, state.now))
    lines = [Content.assemble((f"{worker.name}  ", "$accent"), status)]
    if state and state.has_ended and state.ended and state.ended.reason:
        lines.append(Content.styled(f"  {state.ended.reason}", "$text-error" if _has_failed(state) else ""))
    where = ", ".join(filter(None, (worker.host, worker.address)))
    if where:
        lines.append(Content.styled(f"  {where}", "$text-muted"))
    if state is None:
        lines.append(Content.styled(f"  on its machine:\n  accel-tui watch {worker.run}", "$text-muted"))
    elif use := _engine(state):
        lines.append(Content.assemble(("  engine ", "$text-muted"), use))
    return Content("\n").join(lines)


def _engine(state: RunState) -> str:
    """CPU and memory use of a worker's own process."""
    meter = state.meters.get("cpu:0")
    cpu, memory = (meter.reading(name).value if meter else None for name in ("engine_cpu", "engine_memory"))
    return "" if cpu is None or memory is None or state.has_ended else f"{cpu:.0f}% {numbers.short_size(memory)}"
