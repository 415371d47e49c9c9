"""What a run that is out of memory does next, so that it trains on with the same batch, steps and schedule.

Micro-batches and rematerialization give the same losses, but for the rounding of sums. Micro-batches come first, as
they take any amount of memory; where layers such as batch normalization make them differ, rematerialization does.
Cures that change results, such as another precision or batch size, are left to the user.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from accel_engine.json_values import Count, Text
from accel_engine.plan.plan import Plan
from accel_engine.words import numbers

MIN_MICRO_BATCH = 8
"""Examples of a micro-batch below which other cures come first: a device is badly used with fewer."""

_LEAST, _LEAST_TOGETHER = 1, 2
"""Examples of a micro-batch at least, and where layers depend on those of the same batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFacts:
    """What decides which cures a training has.

    Attributes:
        batch: Examples per step on each replica.
        can_split: Whether gradients can be accumulated over micro-batches.
        splitting_changes: What micro-batches change besides the rounding of sums, such as ``dropout``.
        can_recompute: Whether parts of the model can be computed again for their gradients.
        caches_data: Whether the training examples are cached on the devices.
        tries_xla: Whether the autotuner may compile the steps with XLA.
        on_host: Whether CPUs train, whose memory is the host's.
        variables: The environment variables that chose the engine's GPUs, such as those that the queue has assigned.
    """

    batch: Count
    can_split: bool = False
    splitting_changes: tuple[Text, ...] = ()
    can_recompute: bool = False
    caches_data: bool = False
    tries_xla: bool = False
    on_host: bool = True
    variables: Mapping[str, Text] = field(default_factory=dict)

    @property
    def splits_exactly(self) -> bool:
        """Whether micro-batches give the same losses."""
        return self.can_split and not self.splitting_changes


@dataclass(frozen=True, slots=True)
class Cure:
    """A change with which a training takes less memory.

    Attributes:
        action: What it does, for the user, after ``the run``.
        changes: Fields of the plan that change, with their new values.
        streams_data: Whether the training examples are no longer cached on the devices.
    """

    action: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    streams_data: bool = False


def next_cure(plan: Plan, facts: MemoryFacts) -> Cure | None:
    """The next cure of a training that is out of memory; ``None`` if none is left.

    Args:
        plan: The plan with which it failed, with the changes of earlier cures.
        facts: What is known of it.
    """
    return next((cure for attempt in _order(facts) if (cure := attempt(plan, facts)) is not None), None)


def _order(facts: MemoryFacts) -> Iterator[Callable[[Plan, MemoryFacts], Cure | None]]:
    """The cures to try, those that cost least first."""
    if facts.splits_exactly:
        yield partial(_split, least=MIN_MICRO_BATCH)
        yield partial(_recompute, given="auto")  # the user's off stays while there is another cure
    else:
        yield partial(_recompute, given="auto")
        yield partial(_recompute, given="off")
    yield _stream
    yield _without_xla
    if facts.splits_exactly:
        yield partial(_split, least=_LEAST)
        yield partial(_recompute, given="off")
    else:
        yield partial(_split, least=_LEAST_TOGETHER)


def _split(plan: Plan, facts: MemoryFacts, *, least: int) -> Cure | None:
    """Twice as many micro-batches, or more if the batch cannot be divided so."""
    now = plan.micro_batches or 1
    counts = range(2 * now, facts.batch // least + 1) if facts.can_split else ()
    count = next((count for count in counts if facts.batch % count == 0), None)
    if count is None:
        return None
    size = facts.batch // count
    action = f"takes each step in {count} micro-batches of {numbers.counted(size, 'example')}"
    if facts.splitting_changes:
        action += f", which changes the losses: {' and '.join(facts.splitting_changes)} see one of them at a time"
    return Cure(action, {"micro_batches": count})


def _recompute(plan: Plan, facts: MemoryFacts, *, given: str) -> Cure | None:
    """Rematerialization, if the plan says ``given`` of it."""
    if plan.remat != given or not facts.can_recompute:
        return None
    instead = ", although the plan says --remat off" if given == "off" else ""
    return Cure(f"computes parts of the model again for the gradients (--remat on{instead})", {"remat": "on"})


def _stream(plan: Plan, facts: MemoryFacts) -> Cure | None:
    """The training examples from the host's memory."""
    del plan
    return Cure("no longer caches the training data on the device", streams_data=True) if facts.caches_data else None


def _without_xla(plan: Plan, facts: MemoryFacts) -> Cure | None:
    """Only one compiled program, if the plan lets the autotuner compile another."""
    if plan.xla != "auto" or not facts.tries_xla:
        return None
    return Cure("does not compile the steps with XLA (--xla off)", {"xla": "off"})
