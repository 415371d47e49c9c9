"""The history of a run: a value from its events, which :func:`fold` extends by further events."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, get_type_hints

from accel_engine import events
from accel_engine.events import CURE, KINDS, NOT_A_NUMBER, UNDO, Event, Outcome, Phase
from accel_engine.plan import Plan
from accel_engine.plan.monitor import is_better_lower
from accel_engine.run.store.database import RunDatabase, reading
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.run.store.stored_events import decoded_events

Points = tuple[tuple[int, float], ...]
"""Steps with values."""

_PAUSED_AFTER = {"pause": True, "resume": False, "stop": False, "stop_now": False}
"""Whether training is paused after each command."""

_GROWING = ("ended_epochs", "validations", "parts", "learning_rates")
"""The fields that are lists while events are added to them."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a script's run."""

    started: events.PartStarted
    """Its start."""
    built: events.ModelBuilt | None = None
    """Its model; ``None`` before it is known, and for values in the output."""
    ended: events.PartEnded | None = None
    """Its end; ``None`` before it, and if the run was lost."""


@dataclass(frozen=True, slots=True)
class Session:
    """A run since a user last started it, also in engines that others have replaced since."""

    began: float = 0.0
    """When, in seconds since the Unix epoch."""
    engines: int = 0
    """How many times an engine has started or gone back to a checkpoint."""
    repairs: int = 0
    """How many times it has continued after a loss that was not a number."""
    rate: events.LearningRateChanged | None = None
    """The last learning rate that a command has set, and that is not undone; ``None`` if there is none."""

    @property
    def is_restarted(self) -> bool:
        """Whether its engine has replaced another one."""
        return self.engines > 1


@dataclass(frozen=True, slots=True)
class CureChange:
    """A change of a run by a cure."""

    changes: Mapping[str, Any]
    """The changed fields, with their new values."""
    before: Mapping[str, Any]
    """The same fields, with the values before."""
    reason: str
    """The finding that it cures, in words."""
    is_rate: bool = False
    """Whether a command has set the optimizer's learning rate, which differs from the plan's."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class History:
    """The history of a run.

    When a run continues from a checkpoint, the epochs, validations and checkpoint after it are forgotten.
    """

    started: events.RunStarted | None = None
    """Start of the latest engine."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """The plan's fields, as changed since."""
    workers_met: events.WorkersMet | None = None
    """The workers of distributed training, once connected; ``None`` for a single worker."""
    devices: events.DevicesFound | None = None
    """TensorFlow's devices."""
    threads: events.ThreadsChosen | None = None
    """The number of threads per operation; ``None`` if it is TensorFlow's own."""
    built: events.ModelBuilt | None = None
    """The model, data and batch that the plan resolved to; of a script's latest part."""
    parts: tuple[Part, ...] = ()
    """The parts of a script's run that ``accel-tui run`` started."""
    phase: events.PhaseChanged | None = None
    """The engine's current phase."""
    training_paused: bool = False
    """Whether training is paused, also while the run validates or saves during the pause."""
    ended_epochs: tuple[events.EpochEnded, ...] = ()
    """The ends of epochs."""
    validations: tuple[events.Validated, ...] = ()
    """The validations."""
    patience_from: int = -1
    """The step up to which values do not count for early stopping: where a run that had finished was continued; -1 if
    it was not."""
    checkpoint: events.CheckpointSaved | None = None
    """The last checkpoint."""
    xla: events.XlaTried | None = None
    """The XLA trial of the latest engine; ``None`` if there was none."""
    micro_batches: events.MicroBatchesTried | None = None
    """Its trial of micro-batches; ``None`` if there was none."""
    work: events.WorkCounted | None = None
    """FLOPs of a step and peak of the devices; ``None`` before they are counted."""
    learning_rate: float | None = None
    """The latest learning rate; ``None`` if unknown."""
    schedule: str = ""
    """Class of the learning-rate schedule; empty without one."""
    learning_rates: Points = ()
    """First step and value of each learning rate."""
    skipped_steps: frozenset[int] = frozenset()
    """The steps that have no update, counted from 0."""
    cures: tuple[CureChange, ...] = ()
    """The changes by cures that were not taken back, oldest first."""
    session: Session = field(default_factory=Session)
    """The run since a user last started it."""
    ended: events.RunEnded | None = None
    """The end; ``None`` while more may come."""
    earlier_seconds: float | None = None
    """Seconds that earlier engines worked on the run; ``None`` if unknown."""
    last_event_time: float = 0.0
    """Time of the latest engine's last event, in seconds since the Unix epoch."""
    interrupted: Session | None = None
    """The session before the latest start, if that is the last event; ``Recovered`` continues it."""
    new_rate: tuple[events.LearningRateChanged, float | None] | None = None
    """The last learning rate, and the one before; ``None`` if an answer or a start came after it."""

    @property
    def epoch(self) -> events.EpochEnded | None:
        """The last completed epoch."""
        return self.ended_epochs[-1] if self.ended_epochs else None

    @property
    def validated(self) -> events.Validated | None:
        """The last validation."""
        return self.validations[-1] if self.validations else None

    def part_at(self, step: int) -> Part | None:
        """The part that took a step, counted from 0; ``None`` for a step before the first part, and without parts."""
        number = bisect_right(self.parts, step, key=lambda part: part.started.step)
        return self.parts[number - 1] if number else None

    def loop_start(self, steps: int) -> int:
        """The first step of the part of the last step, unless it is a ``fit``, which has epochs; else 0."""
        part = self.part_at(steps - 1)
        return part.started.step if part and not (part.built and part.built.epochs) else 0

    @property
    def resumed_at(self) -> int:
        """The step that the latest engine continued from; 0 if it started the run."""
        return self.started.first_step if self.started else 0

    @property
    def seconds_worked(self) -> float | None:
        """Seconds that engines worked on the run up to the latest end, without the time in between.

        ``None`` if unknown.
        """
        if self.started is None or self.earlier_seconds is None:
            return None if self.started else 0.0
        return self.earlier_seconds + self.latest_seconds

    @property
    def latest_seconds(self) -> float:
        """Seconds that the latest engine worked; for one that exited unexpectedly, up to its last event."""
        if self.started is None:
            return 0.0
        return self.ended.seconds if self.ended else max(0.0, self.last_event_time - self.started.time)

    @property
    def metrics(self) -> dict[str, float]:
        """The latest means of each metric over an epoch; validation's are prefixed with ``validation_``."""
        found: dict[str, float] = {}
        for epoch in self.ended_epochs:
            found |= epoch.metrics
        for validation in self.validations:
            found |= {f"{VALIDATION_PREFIX}{name}": value for name, value in validation.metrics.items()}
        return found

    def trained_epochs(self, step: int) -> float:
        """The epochs trained at a step, as a fraction; where their length is unknown, a part counts as half of one."""
        if self.built and self.built.steps_per_epoch:
            return step / self.built.steps_per_epoch
        last = next((epoch for epoch in reversed(self.ended_epochs) if epoch.step <= step), None)
        ended, last_step = (last.epoch, last.step) if last else (0, 0)
        return ended + (0.5 if step > last_step else 0.0)

    @property
    def epoch_spans(self) -> tuple[tuple[int, int, int], ...]:
        """The steps whose epoch is known: the first of each span, its epoch, and the length of this and later epochs.

        A span up to the recorded end of an epoch has the length 0. After the last end of a part, or without one, epochs
        have the length that its model tells; if it tells none, all of the rest is one epoch, or epoch 0 without an end.
        """
        parts = [(each.started.step, each.started.epoch, each.built) for each in self.parts] or [(0, 0, self.built)]
        stops = [*(first for first, _, _ in parts[1:]), None]
        spans: list[tuple[int, int, int]] = []
        for (first, before, built), stop in zip(parts, stops, strict=True):
            begin = bisect_right(self.ended_epochs, first, key=_step)
            end = None if stop is None else bisect_right(self.ended_epochs, stop, key=_step)
            ended = self.ended_epochs[begin:end]
            length = (built.steps_per_epoch or 0) if built and built.epochs else 0  # a loop's is that of all its steps
            last = (ended[-1].epoch if ended else before) + 1 if ended or length else 0
            starts, epochs = [first, *map(_step, ended)], [*(each.epoch for each in ended), last]
            spans += zip(starts, epochs, [*[0] * len(ended), length], strict=True)
        return tuple(spans)

    def measured(self, monitor: str) -> Sequence[events.EpochEnded | events.Validated]:
        """The events with a metric: validations if it has the prefix ``validation_``, else epochs."""
        return self.validations if monitor.startswith(VALIDATION_PREFIX) else self.ended_epochs

    def points(self, monitor: str) -> Points:
        """The steps and values of a metric: of validations if it has the prefix ``validation_``, else of epochs."""
        name = monitor.removeprefix(VALIDATION_PREFIX)
        return tuple((each.step, each.metrics[name]) for each in self.measured(monitor) if name in each.metrics)

    def autotuned_plan(self, plan: Plan) -> Plan:
        """The run's plan with what it left to choose: the execution mode that the run trains in, and its threads.

        A run that has chosen no mode trains without XLA, unless its plan has it, and in whole batches.
        """
        chosen: dict[str, Any] = {"xla": "on" if self.xla and self.xla.xla else "off"} if plan.xla == "auto" else {}
        if self.micro_batches and plan.micro_batches is None:
            chosen["micro_batches"] = self.micro_batches.micro_batches
        if self.threads and plan.threads is None:
            chosen["threads"] = self.threads.threads
        return plan.replace(**chosen)


def _step(ended: events.EpochEnded) -> int:
    return ended.step


_LATEST = {
    kind: name for name, hint in get_type_hints(History).items() for kind in KINDS.values() if hint == kind | None
}
"""The field for the latest event of a kind."""

H = TypeVar("H", bound=History)


def fold(history: H, new: Iterable[Event]) -> H:
    """The history after further events; a pure function."""
    draft = SimpleNamespace(**{each.name: getattr(history, each.name) for each in fields(History)})
    for name in _GROWING:
        setattr(draft, name, [*getattr(history, name)])
    for event in new:
        _add(draft, event)
    for name in _GROWING:
        setattr(draft, name, tuple(getattr(draft, name)))
    return replace(history, **vars(draft))


def read_history(directory: Path, *kinds: type[Event]) -> History:
    """The history of a run, from its events; only from some kinds if any are given.

    Raises:
        RunError: The run cannot be read.
    """
    with reading(directory) as database:
        return stored_history(database, *kinds)


def read_session(directory: Path) -> Session:
    """The present session of a run.

    Raises:
        RunError: The run cannot be read.
    """
    kinds = (
        events.RunStarted,
        events.Recovered,
        events.LearningRateChanged,
        events.CommandAnswered,
        events.RunEnded,
    )
    return read_history(directory, *kinds).session


def read_epochs(directory: Path, step: int) -> int:
    """The completed epochs of a run at a step.

    Raises:
        RunError: The run cannot be read.
    """
    return int(read_history(directory, events.ModelBuilt, events.EpochEnded).trained_epochs(step)) if step else 0


def stored_history(database: RunDatabase, *kinds: type[Event]) -> History:
    """The history of a run from its database, as :func:`read_history` gives it."""
    rows = database.events(kinds=[kind.kind() for kind in kinds])
    return fold(History(), (event for _, event in decoded_events(database, rows)))


def best_point(points: Iterable[tuple[int, float]], monitor: str, plan: Mapping[str, Any]) -> tuple[int, float] | None:
    """The step and the best value of a metric: as with early stopping, the last one that was an improvement.

    Args:
        points: Steps and values.
        monitor: The metric.
        plan: The plan's fields.

    Returns:
        ``None`` if there is no finite value, or if it is unknown which ones are better.
    """
    lower = is_better_lower(monitor, plan.get("monitor_mode"))
    if lower is None:
        return None
    best, min_delta = None, plan.get("min_delta") or 0.0
    for step, value in points:
        if isfinite(value) and (best is None or is_improvement(value, best[1], lower=lower, min_delta=min_delta)):
            best = step, value
    return best


def is_improvement(value: float, best: float, *, lower: bool, min_delta: float) -> bool:
    """Whether a value is better than the best one by more than ``min_delta``, as in Keras."""
    return value < best - min_delta if lower else value > best + min_delta


def skipped_steps(steps: object) -> frozenset[int]:
    """The steps that have no update, counted from 0, by the plan's ``skip_steps``."""
    texts = map(str, steps) if isinstance(steps, list | tuple) else ()
    return frozenset(int(text) for text in texts if text.isdecimal())


def _add(draft: SimpleNamespace, event: Event) -> None:
    if isinstance(event, events.RunStarted):
        _start(draft, event)
        return
    draft.last_event_time = max(draft.last_event_time, event.time)
    if draft.interrupted and not isinstance(event, events.Recovered):
        draft.interrupted = None
    if name := _LATEST.get(type(event)):
        setattr(draft, name, event)
    match event:
        case events.EpochEnded():
            draft.ended_epochs.append(event)
        case events.Validated():
            draft.validations.append(event)
        case events.PhaseChanged(phase=Phase.PAUSED | Phase.TRAINING | Phase.SCRIPT as phase):
            draft.training_paused = phase is Phase.PAUSED
        case events.PartStarted():
            draft.parts.append(Part(event))
            # The part has another model, optimizer and first step.
            draft.built, draft.learning_rate, draft.schedule = None, None, ""
        case events.ModelBuilt() if draft.parts:
            draft.parts[-1] = replace(draft.parts[-1], built=event)
        case events.PartEnded() if draft.parts:
            draft.parts[-1] = replace(draft.parts[-1], ended=event)
        case events.LearningRateChanged(step=step, learning_rate=rate):
            draft.new_rate = event, draft.learning_rate
            draft.learning_rate, draft.schedule = rate, event.schedule
            while draft.learning_rates and draft.learning_rates[-1][0] >= step:
                draft.learning_rates.pop()
            draft.learning_rates.append((step, rate))
        case events.CommandAnswered():
            _answer(draft, event)
        case events.Recovered():
            _recover(draft, event)
        case events.PlanChanged(changes=changes, before=before, reason=reason):
            _change_plan(draft, changes)
            _cure(draft, CureChange(changes, before, reason), event.purpose)


def _start(draft: SimpleNamespace, event: events.RunStarted) -> None:
    """An engine starts, continues from a step, or goes back to one: forget what came after that."""
    first, before = event.first_step, draft.started
    draft.earlier_seconds = None if before is None and first else _seconds_worked(draft)
    draft.ended_epochs = [each for each in draft.ended_epochs if each.step <= first]
    draft.validations = [each for each in draft.validations if each.step <= first]
    is_longer = draft.ended is not None and draft.ended.outcome is Outcome.FINISHED
    draft.patience_from = first if is_longer else min(draft.patience_from, first)
    if draft.checkpoint and draft.checkpoint.step > first:
        draft.checkpoint = None
    draft.interrupted = None
    # In a container, each engine may have the same host and process id: one that has ended is another one.
    if before and draft.ended is None and (before.pid, before.host) == (event.pid, event.host):
        draft.session = replace(draft.session, engines=draft.session.engines + 1)
    else:
        draft.interrupted = draft.session if before else None
        draft.session = Session(event.time, 1)
    draft.learning_rate = draft.learning_rate if first else event.plan.get("learning_rate")
    draft.skipped_steps = frozenset(step for step in draft.skipped_steps if step < first)
    draft.skipped_steps |= skipped_steps(event.plan.get("skip_steps"))
    draft.started, draft.plan, draft.last_event_time = event, event.plan, event.time
    draft.training_paused = False
    for name in ("ended", "threads", "xla", "micro_batches", "work", "phase", "workers_met", "new_rate"):
        setattr(draft, name, None)


def _seconds_worked(draft: SimpleNamespace) -> float | None:
    known = ("started", "ended", "earlier_seconds", "last_event_time")
    return History(**{name: getattr(draft, name) for name in known}).seconds_worked


def _answer(draft: SimpleNamespace, event: events.CommandAnswered) -> None:
    if event.obeyed:
        draft.training_paused = _PAUSED_AFTER.get(event.command, draft.training_paused)
    if event.obeyed and event.command == "learning_rate" and draft.new_rate:
        change, before = draft.new_rate
        if draft.started:
            draft.session = replace(draft.session, rate=change)
        if before is not None:
            rates = {"learning_rate": change.learning_rate}, {"learning_rate": before}
            _cure(draft, CureChange(*rates, event.reason, is_rate=True), event.purpose)
    draft.new_rate = None


def _recover(draft: SimpleNamespace, event: events.Recovered) -> None:
    """The engine that has just started continues the session before; a bad loss undoes a learning rate."""
    if draft.interrupted:
        draft.session = replace(draft.interrupted, engines=draft.interrupted.engines + 1)
    if event.trouble == NOT_A_NUMBER and draft.started:
        draft.session = replace(draft.session, repairs=draft.session.repairs + 1, rate=None)
    draft.interrupted, draft.new_rate = None, None
    _change_plan(draft, event.changes)


def _change_plan(draft: SimpleNamespace, changes: Mapping[str, Any]) -> None:
    draft.plan = {**draft.plan, **changes}
    draft.skipped_steps |= skipped_steps(changes.get("skip_steps"))


def _cure(draft: SimpleNamespace, change: CureChange, purpose: str) -> None:
    """Add a cure to those that were applied, or remove the last one if a change took that back."""
    if purpose == CURE:
        draft.cures = (*draft.cures, change)
    elif purpose == UNDO:
        draft.cures = draft.cures[:-1]
