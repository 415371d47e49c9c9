"""How near a run is to the limit of its memory, what takes it, and what would fit."""

from collections.abc import Iterator
from math import prod

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, memory_finding
from accel_engine.advice.recorded import Recorded
from accel_engine.advice.rule import Rule
from accel_engine.events import OUT_OF_MEMORY, Outcome, Recovered, RunEnded
from accel_engine.plan import Plan, array_bytes
from accel_engine.plan.changed_plan import options_text
from accel_engine.plan.memory_remedies import MIXED, MemoryFacts, advised
from accel_engine.words.numbers import percent, size

NEAR = 0.92
"""Share of a device's memory in use from which the next larger step may fail."""

MIN_SAMPLES = 3
"""Readings from which memory is judged."""

LAYERS = 3
"""Layers that are named, those with the largest outputs."""


def out_of_memory(recorded: Recorded) -> Iterator[Finding]:
    """The run failed because it was out of memory, or adapted its steps to go on."""
    ended, adapted = recorded.ended, _adapted(recorded)
    if ended is not None and ended.outcome is Outcome.FAILED and OUT_OF_MEMORY in ended.reason:
        yield _failed(recorded, ended)
    elif adapted is not None:
        again = adapted.failed_step - adapted.step
        yield memory_finding(
            id="adapted-to-memory",
            title="The run was out of memory, and adapted its steps",
            evidence=(
                Evidence(f"{adapted.reason}: {adapted.action}", steps=(adapted.step, adapted.failed_step)),
                *_contents(recorded),
            ),
            confidence=Confidence.CERTAIN,
            cost=f"{again:,} steps were trained again" if again else "the steps were built again",
            cures=(Cure("start the next run with what this one changed: " + options_text(adapted.changes)),),
            weight=0.3,
        )


def _adapted(recorded: Recorded) -> Recovered | None:
    """The last change of the steps for lack of memory; validations and caches adapt without one."""
    repairs = [each for each in recorded.all(Recovered) if each.trouble == OUT_OF_MEMORY and each.changes]
    return repairs[-1] if repairs else None


def near_limit(recorded: Recorded) -> Iterator[Finding]:
    """A device's memory is nearly full."""
    for device in recorded.training_devices:
        used, total, what = _use(recorded, device)
        if total <= 0 or used < NEAR * total:
            continue
        yield memory_finding(
            id="memory-nearly-full",
            title=f"{percent(used / total)} of the memory of {device} was in use",
            evidence=(Evidence(f"{what}: {size(used)} of {size(total)}"), *_contents(recorded)),
            confidence=Confidence.LIKELY,
            cost="a larger batch, or another program, would end the run",
            cures=_cures(recorded),
            weight=0.3,
        )
        return


def _failed(recorded: Recorded, ended: RunEnded) -> Finding:
    return memory_finding(
        id="out-of-memory",
        title="The run failed: out of memory",
        evidence=(
            Evidence(f"after step {ended.steps:,}: {ended.reason}", steps=(ended.steps, ended.steps)),
            *_contents(recorded),
        ),
        confidence=Confidence.CERTAIN,
        cost="the run",
        cures=_cures(recorded),
        weight=1.0,
    )


def _use(recorded: Recorded, device: str) -> tuple[float, float, str]:
    """The most memory in use, the device's memory, and what was measured; zeros with too few readings.

    On an accelerator, what TensorFlow's allocator has given out: what it reserves says little. On the host, what all
    programs use; zeros unless the run has a quarter of the memory.
    """
    _, total = recorded.readings(device, "memory_total")
    if len(total) < MIN_SAMPLES:
        return 0.0, 0.0, ""
    if not device.startswith("cpu"):
        _, peak = recorded.readings(device, "allocated_peak")
        return (float(peak.max()) if len(peak) else 0.0), float(total[-1]), "TensorFlow used at most"
    _, used = recorded.readings(device, "memory_used")
    _, own = recorded.readings(device, "engine_memory")
    if not len(used) or not len(own) or own.max() < total[-1] / 4:
        return 0.0, 0.0, ""
    return float(used.max()), float(total[-1]), f"of which the run has {size(own.max())}"


def _cures(recorded: Recorded) -> tuple[Cure, ...]:
    """Cures that need less memory; first the cures that cost least."""
    plan = recorded.plan or Plan()
    batch = (recorded.built.per_replica_batch if recorded.built else 0) or plan.batch_size
    mixed = next((MIXED[kind] for kind in recorded.device_kinds if kind in MIXED), "")
    gpus = sum(device.startswith("gpu") for device in recorded.devices) if "gpu" in recorded.device_kinds else 0
    facts = MemoryFacts(
        batch=batch,
        can_split=True,
        can_recompute=True,
        can_place_state=True,
        on_host=not gpus,
        mixed=mixed,
        pipeline_devices=gpus,
    )
    cures = []
    for remedy, value in advised(plan, facts):
        changes = {remedy.field: value} if recorded.plan else {}
        option = f": {options_text(changes)}" if changes else ""
        cures.append(Cure(f"{remedy.words}{option}", changes, script=remedy.script.format(value)))
    return tuple(cures)


def _contents(recorded: Recorded) -> Iterator[Evidence]:
    """The computed bytes of the arrays of a step on a replica, the largest outputs of layers last."""
    built, plan = recorded.built, recorded.plan or Plan()
    if built is None or built.parameters is None:
        return
    trainable = built.parameters if built.trainable is None else built.trainable
    parts = {
        "weights": array_bytes.weight_bytes(plan, built.parameters),
        "gradients": array_bytes.gradient_bytes(plan, trainable),
        "optimizer state": array_bytes.slot_bytes_on_device(plan, trainable, replicas=max(1, len(recorded.devices)))[0],
    }
    layers = _outputs(recorded, plan, built.per_replica_batch or 0)
    if layers:
        parts["outputs of layers"] = sum(layers.values())
    yield Evidence("computed: " + ", ".join(f"{name} {size(nbytes)}" for name, nbytes in parts.items()))
    largest = sorted(layers.items(), key=lambda item: -item[1])[:LAYERS]
    if largest:
        yield Evidence("largest outputs: " + ", ".join(f"{name} {size(nbytes)}" for name, nbytes in largest))


def _outputs(recorded: Recorded, plan: Plan, batch: int) -> dict[str, int]:
    """Bytes of the output of each layer for a batch, by name; layers within others are left out."""
    table = recorded.diagnostics.layers
    found: dict[str, int] = {}
    for layer in table.layers if table and batch else ():
        shape = [side for side in layer.shape or () if side]
        if shape and not layer.inner:
            found[layer.name] = array_bytes.activation_bytes(plan, array_bytes.FLOAT32_BYTES * prod(shape), batch)
    return found


RULES: tuple[Rule, ...] = (out_of_memory, near_limit)
