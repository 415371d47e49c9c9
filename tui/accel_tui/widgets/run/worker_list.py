"""The workers of a run that many train: in a line, and one by one."""

from textual.content import Content

from accel_engine.events import Outcome, Phase
from accel_tui.formatting import units
from accel_tui.run.state import RunState
from accel_tui.run.worker_follower import Worker, means_of, workers_of
from accel_tui.widgets.run.phase_line import phase
from accel_tui.widgets.run.run_text import RunText

_AT_WORK = (Phase.TRAINING, Phase.VALIDATING, Phase.CHECKPOINTING)
"""What all workers do at the same time, so that it is told of the run."""

_NAMED = 3
"""How many workers of whom the same is said are named."""


class WorkerSummary(RunText):
    """One line: how many there are, and what they are busy with, trouble first. Only where there are others."""

    DEFAULT_CSS = """
    WorkerSummary {
        display: none;
        height: 1;
        padding: 0 1;
    }
    """

    def take(self, state: RunState) -> None:
        """Be there once there are others."""
        self.display = state.met is not None or bool(state.workers)
        super().take(state)

    def words(self, state: RunState) -> Content:
        """What is said of all workers; those of whom the same is said stand together."""
        workers = workers_of(state)
        if not workers:
            return Content("")
        alike: dict[tuple[int, Content], list[Worker]] = {}
        for worker in workers:
            alike.setdefault((_urgency(worker), _standing(worker)), []).append(worker)
        by = f" by {means_of(state.met)}" if state.met else ""
        parts = [Content.styled(f"{len(workers)} workers{by}", "$text-muted")]
        for urgency, said in sorted(alike, key=lambda key: key[0]):
            them = alike[urgency, said]
            parts.append(Content.assemble(said, (": ", "$text-muted"), _named(them, len(workers))))
        return Content("   ").join(parts).truncate(self.size.width, ellipsis=True)


class WorkerList(RunText):
    """A paragraph for each worker: what it does, where it is, and what became of it. Only where there are others."""

    DEFAULT_CSS = """
    WorkerList {
        height: auto;
        margin-top: 1;
    }
    """

    def take(self, state: RunState) -> None:
        """Be there once there are others."""
        self.display = state.met is not None or bool(state.workers)
        super().take(state)

    def words(self, state: RunState) -> Content:
        """The heading and the paragraphs."""
        heading = Content.styled("Workers", "bold $primary")
        return Content("\n").join([heading, *(_paragraph(worker) for worker in workers_of(state))])


def _urgency(worker: Worker) -> int:
    """Who is lost comes before who failed for want of them."""
    if worker.state is None:
        return 3
    return 0 if worker.state.lost else 1 if _trouble(worker.state) else 2


def _trouble(state: RunState) -> bool:
    return state.lost or (state.over and state.ended is not None and state.ended.outcome is Outcome.FAILED)


def _at_work(state: RunState) -> bool:
    return state.live and state.phase is not None and state.phase.phase in _AT_WORK


def _standing(worker: Worker) -> Content:
    """What a worker is busy with, or what became of it, in a word."""
    if worker.state is None:
        return Content.styled("not seen from here", "$text-muted")
    if _at_work(worker.state):
        return Content.styled("● at work", "bold $success")
    return Content.assemble(*phase(worker.state, 0.0, brief=True))


def _named(workers: list[Worker], count: int) -> str:
    if len(workers) == count:
        return "all"
    if len(workers) > _NAMED:
        return f"{len(workers)} workers"
    return ", ".join(worker.name for worker in workers)


def _paragraph(worker: Worker) -> Content:
    state = worker.state
    said = _standing(worker) if state is None or _at_work(state) else Content.assemble(*phase(state, state.now))
    lines = [Content.assemble((f"{worker.name}  ", "$accent"), said)]
    if state and state.over and state.ended and state.ended.reason:
        lines.append(Content.styled(f"  {state.ended.reason}", "$text-error" if _trouble(state) else ""))
    where = ", ".join(filter(None, (worker.host, worker.address)))
    if where:
        lines.append(Content.styled(f"  {where}", "$text-muted"))
    if state is None:
        lines.append(Content.styled(f"  its log and samples are there: accel-tui watch {worker.run}", "$text-muted"))
    elif use := _engine(state):
        lines.append(Content.assemble(("  engine ", "$text-muted"), use))
    return Content("\n").join(lines)


def _engine(state: RunState) -> str:
    """The processors and the memory that a worker's own process uses."""
    meter = state.meters.get("cpu:0")
    cpu, memory = (meter.reading(name).value if meter else None for name in ("engine_cpu", "engine_memory"))
    return "" if cpu is None or memory is None or state.over else f"{cpu:.0f}% {units.size(memory)}"
