"""Remedies for a training that lacks memory, the cheapest first: for recovery, for estimates and for advice.

Micro-batches and rematerialization give the same losses, but for the rounding of sums. Micro-batches come first, as
they take any amount of memory; where layers such as batch normalization make them differ, rematerialization does.
So does state in host memory, which takes more time on its way than rematerialization in most models.
What changes results, a mixed precision or another batch size, is left to the user.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

from accel_engine.errors import FieldValue, Words
from accel_engine.json_values import Count, Text
from accel_engine.plan.array_bytes import optimizer_slots
from accel_engine.plan.memory_estimate import MemoryEstimate, Training, estimate_memory
from accel_engine.plan.plan import Plan
from accel_engine.words import numbers

MIN_MICRO_BATCH = 8
"""Examples of a micro-batch below which other remedies come first: a device is badly used with fewer."""

_LEAST, _LEAST_TOGETHER = 1, 2
"""The fewest examples of a micro-batch, and where layers depend on the other examples of a batch."""

MIXED = {"gpu": "mixed_float16", "tpu": "mixed_bfloat16"}
"""The mixed precision of each kind of device; CPUs have none that is fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFacts:
    """The facts that decide which remedies a training has."""

    batch: Count
    """Examples per step on each replica."""
    micro_batches: Count = 1
    """Micro-batches of a step, which a pipeline chooses if the plan does not."""
    can_split: bool = False
    """Whether gradients can be accumulated over micro-batches."""
    splitting_changes: tuple[Text, ...] = ()
    """What micro-batches change besides the rounding of sums, such as ``dropout``."""
    can_recompute: bool = False
    """Whether parts of the model can be computed again for their gradients."""
    caches_data: bool = False
    """Whether the training examples are cached on the devices."""
    tries_xla: bool = False
    """Whether the autotuner may compile the steps with XLA."""
    can_place_state: bool = False
    """Whether the optimizer has state that could be divided over replicas, or in host memory."""
    on_host: bool = True
    """Whether CPUs train, whose memory is the host's."""
    mixed: Text = ""
    """The mixed precision of its devices; empty if they have none, or are unknown."""
    pipeline_devices: Count = 0
    """GPUs that could each have a part of the model; 0 if it cannot be cut, or if CPUs train, which share a memory."""
    variables: Mapping[str, Text] = field(default_factory=dict)
    """The environment variables that chose the engine's GPUs, such as those that the queue has assigned."""

    @property
    def splits_exactly(self) -> bool:
        """Whether micro-batches give the same losses."""
        return self.can_split and not self.splitting_changes


Values = Callable[[Plan, MemoryFacts], Sequence[Any]]
"""The values of a field with which a plan takes less and less memory; none if they do not help, or cannot be."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change of a field with which a training takes less memory."""

    field: str
    """The field of the plan; empty for the cache of the training data, which is not a field."""
    values: Values
    words: str = ""
    """The remedy as an instruction to the user."""
    script: str = ""
    """The same in a script with Keras; ``{}`` stands for the value."""
    by_itself: bool = True
    """Whether a run that is out of memory makes the change by itself."""
    is_last: bool = False
    """Whether it is for what nothing else helps: it ignores what the user has set, or uses devices badly."""

    def value(self, plan: Plan, facts: MemoryFacts) -> Any:
        """The first value that takes clearly less memory: of micro-batches twice as many; ``None`` without one."""
        least = 2 * _divided(plan, facts) if self.field == "micro_batches" else 0
        return next((value for value in self.values(plan, facts) if not least or value >= least), None)


def _divided(plan: Plan, facts: MemoryFacts) -> int:
    return plan.micro_batches or facts.micro_batches


def _micro_batches(plan: Plan, facts: MemoryFacts, least: int) -> Sequence[int]:
    """Numbers of micro-batches of at least ``least`` examples that divide the batch evenly."""
    counts = range(_divided(plan, facts) + 1, facts.batch // least + 1) if facts.can_split else ()
    return [count for count in counts if facts.batch % count == 0]


def _exact(plan: Plan, facts: MemoryFacts) -> Sequence[int]:
    return _micro_batches(plan, facts, MIN_MICRO_BATCH) if facts.splits_exactly else ()


def _small(plan: Plan, facts: MemoryFacts) -> Sequence[int]:
    return _micro_batches(plan, facts, _LEAST if facts.splits_exactly else _LEAST_TOGETHER)


def _remat(plan: Plan, facts: MemoryFacts) -> Sequence[str]:
    return ["on"] if plan.remat == "auto" and facts.can_recompute else ()


def _remat_although_off(plan: Plan, facts: MemoryFacts) -> Sequence[str]:
    return ["on"] if plan.remat == "off" and facts.can_recompute else ()


def _sharded(plan: Plan, facts: MemoryFacts) -> Sequence[str]:
    is_new = plan.strategy == "mirrored" and plan.optimizer_state == "device"
    return ["sharded"] if is_new and _has_state(plan, facts) else ()


def _on_host(plan: Plan, facts: MemoryFacts) -> Sequence[str]:
    is_new = plan.strategy in ("default", "one-device", "pipeline", "mirrored") and plan.optimizer_state != "host"
    return ["host"] if is_new and not facts.on_host and _has_state(plan, facts) else ()


def _has_state(plan: Plan, facts: MemoryFacts) -> bool:
    return facts.can_place_state and optimizer_slots(plan) > 0 and plan.xla != "on"


def _pipeline(plan: Plan, facts: MemoryFacts) -> Sequence[str]:
    return ["pipeline"] if facts.pipeline_devices > 1 and plan.strategy in ("default", "one-device") else ()


def _smaller_batches(plan: Plan, facts: MemoryFacts) -> Sequence[int]:
    """Smaller batches of all replicas, each half of the one before."""
    replicas = max(1, plan.batch_size // max(1, facts.batch))
    return [(facts.batch >> halvings) * replicas for halvings in range(1, facts.batch.bit_length())]


_SPLIT = (
    "split each batch",
    "accumulate gradients (gradient_accumulation_steps of the optimizer) with a smaller batch",
)
_RECOMPUTE = ("compute parts of the model again instead of keeping them", "keras.RematScope around the model's layers")
_LESS_STATE = "an optimizer with less state, such as Lion or Adafactor"

REMEDIES = (
    Remedy("micro_batches", _exact, *_SPLIT),
    Remedy("remat", _remat, *_RECOMPUTE),
    Remedy(
        "remat",
        lambda plan, facts: () if facts.splits_exactly else _remat_although_off(plan, facts),
        *_RECOMPUTE,
        is_last=True,
    ),
    Remedy("", lambda _, facts: [True] if facts.caches_data else ()),
    Remedy("optimizer_state", _sharded, "divide the optimizer's state over the devices", _LESS_STATE),
    Remedy("optimizer_state", _on_host, "keep the optimizer's state in host memory", _LESS_STATE),
    Remedy("xla", lambda plan, facts: ["off"] if plan.xla == "auto" and facts.tries_xla else ()),
    Remedy("micro_batches", _small, *_SPLIT, is_last=True),
    Remedy("remat", _remat_although_off, *_RECOMPUTE, is_last=True),
    Remedy(
        "precision",
        lambda plan, facts: [facts.mixed] if facts.mixed and plan.policy == "float32" else (),
        "keep activations in half the bytes",
        "keras.config.set_dtype_policy of a mixed precision",
        by_itself=False,
    ),
    Remedy(
        "strategy",
        _pipeline,
        "put a part of the model on each GPU",
        "a device scope for each part of the model",
        by_itself=False,
    ),
    Remedy("batch_size", _smaller_batches, "a smaller batch", "a batch size of {}", by_itself=False),
)
"""All of them, those that cost least first."""


def advised(plan: Plan, facts: MemoryFacts) -> Iterator[tuple[Remedy, Any]]:
    """The remedies that a user can choose from, at most one of each field, with its value.

    Args:
        plan: The plan of a training that lacks memory.
        facts: What is known of it.
    """
    fields = set[str]()
    for remedy in REMEDIES:
        if remedy.words and remedy.field not in fields and (value := remedy.value(plan, facts)) is not None:
            fields.add(remedy.field)
            yield remedy, value


@dataclass(frozen=True, slots=True)
class MemoryRepair:
    """A change that a run makes by itself when it is out of memory."""

    action: str
    """What it does, for the user, after ``the run``."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the plan that change, with their new values."""
    streams_data: bool = False
    """Whether the training examples are no longer cached on the devices."""


def next_repair(plan: Plan, facts: MemoryFacts) -> MemoryRepair | None:
    """The next change of a training that is out of memory, with the same batch, steps and schedule.

    Args:
        plan: The plan with which it failed, with the changes of earlier repairs.
        facts: What is known of it.

    Returns:
        The change; ``None`` if there are no more.
    """
    for remedy in REMEDIES:
        if remedy.by_itself and (value := remedy.value(plan, facts)) is not None:
            changes = {remedy.field: value} if remedy.field else {}
            return MemoryRepair(_action(remedy.field, value, plan, facts), changes, streams_data=not remedy.field)
    return None


def _action(name: str, value: Any, plan: Plan, facts: MemoryFacts) -> str:
    """The effect of a change, in words after ``the run``."""
    match name:
        case "micro_batches":
            return _in_micro_batches(value, facts)
        case "remat":
            instead = ", although the plan says --remat off" if plan.remat == "off" else ""
            return f"computes parts of the model again for the gradients (--remat on{instead})"
        case "optimizer_state":
            where = "divides the optimizer's state over the devices"
            where = where if value == "sharded" else "keeps the optimizer's state in host memory"
            return f"{where} (--optimizer-state {value})"
        case "xla":
            return "does not compile the steps with XLA (--xla off)"
    return "no longer caches the training data on the device"


def _in_micro_batches(count: int, facts: MemoryFacts) -> str:
    size = facts.batch // count
    action = f"takes each step in {count} micro-batches of {numbers.counted(size, 'example')}"
    if facts.splitting_changes:
        action += f", which changes the losses: {' and '.join(facts.splitting_changes)} see one of them at a time"
    return action


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A changed training."""

    training: Training
    values: Mapping[str, str | int] = field(default_factory=dict)
    """The changed fields with their values; none of the training as it was."""

    @property
    def words(self) -> Words:
        """The changed fields: options of the command line, or fields of the form."""
        words = [word for name, value in self.values.items() for word in (", ", FieldValue(name, str(value)))]
        return tuple(words[1:])

    @property
    def estimate(self) -> MemoryEstimate:
        """The memory of the changed training."""
        return estimate_memory(self.training)

    @property
    def fits(self) -> bool:
        """Whether it fits in its memory for certain, by the estimate."""
        return self.training.memory is not None and self.estimate.fits(self.training.memory) is True

    def with_field(self, name: str, value: str | int, **training: Any) -> Self:
        """Change a field of the plan, and attributes of the training."""
        plan = training.pop("plan", self.training.plan).replace(**{name: value})
        return replace(
            self, training=replace(self.training, plan=plan, **training), values={**self.values, name: value}
        )


def cheapest_change(training: Training) -> PlanChange | None:
    """Find the cheapest change with which a training fits in its memory for certain, by the estimate.

    Args:
        training: A training that may not fit, with its memory.

    Returns:
        The change; ``None`` without one, or if the memory is unknown.
    """
    values = _values(training)
    starts = [PlanChange(training)]
    for name in ("remat", "optimizer_state", "precision"):
        starts += [start.with_field(name, value) for start in starts for value in values[name]]
    found = (_first_that_fits(start, values["micro_batches"], _start_in_micro_batches) for start in starts)
    staged = (_in_stages(start, name) for start in starts for name in values["strategy"])
    smaller = (_first_that_fits(start, values["batch_size"], _with_batch) for start in starts)
    in_stages = (change for change in staged if change.fits)
    return next((change for change in chain(found, in_stages, smaller) if change is not None), None)


def _values(training: Training) -> Mapping[str, Sequence[Any]]:
    """The values of fields that may help, without last resorts, from the mildest on."""
    plan, size = training.plan, training.size
    facts = MemoryFacts(
        batch=training.per_replica_batch,
        can_split=size.is_divisible,
        can_recompute=size.remat_share is not None and plan.strategy != "parameter-server",
        can_place_state=True,
        on_host=training.kind == "cpu",
        mixed=MIXED.get(training.kind, ""),
        pipeline_devices=len(training.accelerators) if size.stages else 0,
    )
    found = defaultdict[str, list[Any]](list)
    for each in REMEDIES:
        found[each.field] += () if each.is_last else each.values(plan, facts)
    return found


def _first_that_fits(
    start: PlanChange, values: Sequence[int], make: Callable[[PlanChange, int], PlanChange]
) -> PlanChange | None:
    """The first change that fits, of ``start`` and of those made of it, which take less and less memory."""
    if start.values and start.fits:
        return start
    first = bisect_left(values, 1, key=lambda value: make(start, value).fits)
    return make(start, values[first]) if first < len(values) else None


def _start_in_micro_batches(start: PlanChange, count: int) -> PlanChange:
    return start.with_field("micro_batches", count)


def _in_stages(start: PlanChange, name: str) -> PlanChange:
    """A pipeline over all GPUs, which has micro-batches by itself."""
    devices = start.training.accelerators
    placement = replace(start.training.placement, devices=devices, stages=len(devices))
    plan = start.training.plan.replace(remat_layers=())
    return start.with_field("strategy", name, plan=plan, placement=placement)


def _with_batch(start: PlanChange, batch: int) -> PlanChange:
    """A smaller batch of all replicas, without micro-batches."""
    training = start.training
    replicas = max(1, training.plan.batch_size // training.per_replica_batch)
    whole = training.plan.replace(micro_batches=None)
    return start.with_field("batch_size", batch, plan=whole, per_replica_batch=batch // replicas)
