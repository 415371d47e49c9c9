"""Accelerators that wait: for the host, for larger batches, or for anybody to use them; and what a TPU pads."""

from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, Gain, speed_finding
from accel_engine.advice.recorded import Recorded
from accel_engine.advice.time_spent import time_spent
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.words.numbers import latency, percent, size, times

MIN_SAMPLES = 5
"""Readings of a device from which its use is judged, about as many seconds."""

IDLE, LOW = 5.0, 50.0
"""Utilizations in percent: an unused device, and one that is not kept busy."""

BUSY_ENGINE, BUSY_PROCESSORS = 50.0, 25.0
"""Utilizations in percent, of one core by the run and of all by any program, from which a CPU trains."""

SMALL_SHARE = 0.5
"""Share of an accelerator's memory below which a larger batch fits for certain."""

MAX_BATCH = 1024
"""Examples of a batch per replica that is not small for any accelerator."""


def unused_accelerator(recorded: Recorded) -> Iterator[Finding]:
    """A run trains on a busy CPU beside an idle GPU or TPU."""
    if recorded.device_kinds - {"cpu"} or not recorded.device_kinds or _chose_devices(recorded):
        return
    if not _processor_is_busy(recorded):
        return
    for device in recorded.devices:
        _, used = recorded.readings(device, "utilization")
        usual = float(np.percentile(used, 90)) if len(used) >= MIN_SAMPLES else 100.0
        if device.startswith("cpu") or usual > IDLE:
            continue
        kind = device.partition(":")[0].upper()
        yield speed_finding(
            id="unused-accelerator",
            title=f"The run trains on the CPU; {device} is idle",
            evidence=(
                Evidence(
                    f"{device} had a utilization of at most {usual:.0f}% in 90% of {len(used):,} readings", THROUGHPUT
                ),
            ),
            confidence=Confidence.CERTAIN,
            cost=f"the {kind} is not used",
            cures=(
                Cure(
                    f"train on it: --devices {device}",
                    {"devices": (device,), "strategy": "default"},
                    script=f"install the build of TensorFlow for the {kind}, and do not hide it (CUDA_VISIBLE_DEVICES)",
                ),
            ),
            weight=0.9,
        )
        return


def _chose_devices(recorded: Recorded) -> bool:
    """Whether the user chose what trains."""
    return recorded.info.has_engine and bool(recorded.info.plan_values.get("devices"))


def _processor_is_busy(recorded: Recorded) -> bool:
    """Whether the run keeps at least half a core busy; where that is unknown, programs keep a quarter of all."""
    _, own = recorded.readings("cpu:0", "engine_cpu")
    _, whole = recorded.readings("cpu:0", "utilization")
    if len(own) >= MIN_SAMPLES:
        return float(np.median(own)) >= BUSY_ENGINE
    return len(whole) >= MIN_SAMPLES and float(np.median(whole)) >= BUSY_PROCESSORS


def underused_accelerator(recorded: Recorded) -> Iterator[Finding]:
    """Accelerators compute for less than half of the time although batches are ready: steps are too small."""
    kinds = recorded.device_kinds & {"gpu", "tpu"}
    spent = time_spent(recorded)
    if not kinds or (spent is not None and spent.input_share >= 0.2):
        return
    values = [recorded.readings(device, "utilization")[1] for device in recorded.training_devices]
    values = [each for each in values if len(each) >= MIN_SAMPLES]
    used = float(np.mean([np.median(each) for each in values])) if values else 100.0
    if not values or used >= LOW or used <= IDLE:
        return
    yield speed_finding(
        id="small-steps",
        title=f"The {'/'.join(sorted(kinds)).upper()} is busy for only {used:.0f}% of the time",
        evidence=(
            Evidence(f"median utilization {used:.0f}% in {len(values[0]):,} readings", THROUGHPUT),
            *_memory(recorded),
        ),
        confidence=Confidence.LIKELY,
        cost=f"{percent(1 - used / 100)} of the device's time",
        cures=tuple(_larger_steps(recorded)),
        weight=(1 - used / 100) * 0.8,
    )


IDLE_SHARE = 0.3
"""Share of a profile in which the devices run nothing, from which a rule says so."""


def idle_device(recorded: Recorded) -> Iterator[Finding]:
    """The devices run nothing for much of the time between operations, as a profile of them tells."""
    profile, spent = recorded.diagnostics.operations, time_spent(recorded)
    if profile is None or not profile.gaps or profile.idle < IDLE_SHARE:
        return
    if recorded.device_kinds and profile.device not in recorded.device_kinds:
        return  # a trace without the operations of the GPU, which has the host's
    if (spent is not None and spent.input_share >= 0.2) or any(underused_accelerator(recorded)):
        return  # the same, with a cause
    longest = profile.gaps[-1]
    share = percent(longest.seconds / profile.seconds / max(1, profile.devices))
    again = Cure(
        "see in the trace what the host does in the gaps: accel-tui profile says how to open it",
        script="take several steps in a call, with steps_per_execution=16 of compile, and make batches ready before "
        "they are needed, with prefetch(tf.data.AUTOTUNE)",
    )
    yield speed_finding(
        id="idle-device",
        title=f"The {profile.device.upper()} runs nothing for {percent(profile.idle)} of the time",
        evidence=(
            Evidence(f"no operation ran in {percent(profile.idle)} of the {profile.seconds:.2f} s that were traced"),
            Evidence(f"{longest.count:,} gaps of up to {latency(longest.longest)} are {share} of it"),
        ),
        confidence=Confidence.LIKELY,
        cost=f"{percent(profile.idle)} of the device's time",
        cures=(*_larger_steps(recorded), again),
        weight=profile.idle * 0.8,
    )


def _memory(recorded: Recorded) -> Iterator[Evidence]:
    for device in recorded.training_devices:
        _, peak = recorded.readings(device, "allocated_peak")
        _, total = recorded.readings(device, "memory_total")
        if len(peak) and len(total):
            yield Evidence(f"TensorFlow has used {size(peak.max())} of {size(total[-1])} of {device}")


def _larger_steps(recorded: Recorded) -> Iterator[Cure]:
    """A larger batch, and XLA, where the plan does not have them."""
    plan, built = recorded.plan, recorded.built
    if plan is not None and plan.xla == "off":
        yield Cure("let XLA join small operations: --xla auto measures whether that is faster", {"xla": "auto"})
    batch = built.per_replica_batch if built else None
    if batch and batch < MAX_BATCH and _has_room(recorded):
        gain = Gain("more examples per second", "a step of twice the examples takes less than twice the time")
        changes = {"batch_size": 2 * plan.batch_size} if plan is not None else {}
        yield Cure(
            "take larger batches, with a learning rate to match: --batch-size, --rate-scaling",
            changes,
            script="take larger batches, with a learning rate to match, and steps_per_execution=16 of compile",
            gain=gain,
        )


def _has_room(recorded: Recorded) -> bool:
    for device in recorded.training_devices:
        _, peak = recorded.readings(device, "allocated_peak")
        _, total = recorded.readings(device, "memory_total")
        if len(peak) and len(total) and peak.max() > SMALL_SHARE * total[-1]:
            return False
    return True


LANES, SUBLANES = 128, 8
"""A TPU pads the last dimension of an array to a multiple of 128, and the one before it to a multiple of 8. Source:
the Cloud TPU performance guide."""

WASTE = 0.25
"""Share of the FLOPs of padded products from which padding matters."""


def tpu_padding(recorded: Recorded) -> Iterator[Finding]:
    """Layers and batches have dimensions that a TPU pads by much."""
    built, table = recorded.built, recorded.diagnostics.layers
    if "tpu" not in recorded.device_kinds or built is None:
        return
    batch = built.per_replica_batch or 0
    share = _padded_share(batch, SUBLANES) if batch else 0.0
    useful = padded = 0.0
    worst: list[tuple[float, str, int]] = []
    for layer in table.layers if table else ():
        width = (layer.shape or (None,))[-1]
        if not layer.flops or not width:
            continue
        factor = _rounded(width, LANES) / width
        useful, padded = useful + layer.flops, padded + layer.flops * factor
        worst.append((layer.flops * (factor - 1), layer.name, width))
    waste = 1 - (1 - share) * (useful / padded if padded else 1.0)
    if waste < WASTE:
        return
    evidence = [
        Evidence(f"{name} has {width:,} features: padded to {_rounded(width, LANES):,}")
        for _, name, width in sorted(worst, reverse=True)[:3]
        if width % LANES
    ]
    if share:
        evidence.insert(0, Evidence(f"{batch:,} examples on each core: padded to {_rounded(batch, SUBLANES):,}"))
    better = _rounded(batch, SUBLANES) * built.replicas
    changes = {"batch_size": better} if share and recorded.plan is not None else {}
    yield speed_finding(
        id="tpu-padding",
        title=f"About {percent(waste)} of the TPU's work is padding",
        evidence=tuple(evidence),
        confidence=Confidence.LIKELY,
        cost=f"{percent(waste)} of the FLOPs",
        cures=(
            Cure(
                "make features multiples of 128 and the batch of each core a multiple of 8, best of 128"
                + (f": --batch-size {better}" if changes else ""),
                changes,
                gain=Gain(f"up to {times(1 / (1 - waste))} the steps per second", "the padded FLOPs", 1 / (1 - waste)),
            ),
        ),
        weight=waste * 0.7,
    )


def _rounded(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _padded_share(value: int, multiple: int) -> float:
    return 1 - value / _rounded(value, multiple)
