"""How near a run is to the limit of its memory, what takes it, and what would fit."""

from collections.abc import Iterator, Mapping
from typing import Any

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, Trouble
from accel_engine.advice.memory.contents import contents
from accel_engine.advice.recorded import Recorded
from accel_engine.events import OUT_OF_MEMORY, Outcome, Recovered, RunEnded
from accel_engine.plan.plan import option_words
from accel_engine.text import shell_command
from accel_engine.words.numbers import percent, size

NEAR = 0.92
"""Share of a device's memory in use from which the next larger step may fail."""

MIN_SAMPLES = 3
"""Readings from which memory is judged."""


def out_of_memory(recorded: Recorded) -> Iterator[Finding]:
    """The run failed because it was out of memory, or adapted its steps to go on."""
    ended, adapted = recorded.ended, _adapted(recorded)
    if ended is not None and ended.outcome is Outcome.FAILED and OUT_OF_MEMORY in ended.reason:
        yield _failed(recorded, ended)
    elif adapted is not None:
        again = adapted.failed_step - adapted.step
        yield Finding(
            id="adapted-to-memory",
            trouble=Trouble.MEMORY,
            title="The run was out of memory, and adapted its steps",
            evidence=(
                Evidence(f"{adapted.reason}: {adapted.action}", steps=(adapted.step, adapted.failed_step)),
                *contents(recorded),
            ),
            confidence=Confidence.CERTAIN,
            cost=f"{again:,} steps were trained again" if again else "the steps were built again",
            cures=(Cure("start the next run with what this one changed: " + _options(adapted.changes)),),
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
        yield Finding(
            id="memory-nearly-full",
            trouble=Trouble.MEMORY,
            title=f"{percent(used / total)} of the memory of {device} was in use",
            evidence=(Evidence(f"{what}: {size(used)} of {size(total)}"), *contents(recorded)),
            confidence=Confidence.LIKELY,
            cost="a larger batch, or another program, would end the run",
            cures=_cures(recorded),
            weight=0.3,
        )
        return


def _failed(recorded: Recorded, ended: RunEnded) -> Finding:
    return Finding(
        id="out-of-memory",
        trouble=Trouble.MEMORY,
        title="The run failed: out of memory",
        evidence=(
            Evidence(f"after step {ended.steps:,}: {ended.reason}", steps=(ended.steps, ended.steps)),
            *contents(recorded),
        ),
        confidence=Confidence.CERTAIN,
        cost="the run",
        cures=_cures(recorded),
        weight=1.0,
    )


def _use(recorded: Recorded, device: str) -> tuple[float, float, str]:
    """The most memory in use, the device's memory, and what was measured.

    Of an accelerator, that which TensorFlow's allocator has given out: what it reserves says little. Of the host, that
    which nothing can use, if the run has a good part of it.
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
    """Changes that take less memory for the same training, before those that change it."""
    plan = recorded.plan
    script = "accumulate gradients (gradient_accumulation_steps of the optimizer) with a smaller batch"
    if plan is None:
        return (Cure(script, script=script),)
    cures, parts = [], 2 * (plan.micro_batches or 1)
    if plan.batch_size % parts == 0:
        cures.append(Cure(f"split each batch: --micro-batches {parts}", {"micro_batches": parts}, script=script))
    if plan.remat != "on":
        words = "compute parts of the model again instead of keeping them: --remat on"
        cures.append(Cure(words, {"remat": "on"}, script="keras.RematScope around the model's layers"))
    half = max(1, plan.batch_size // 2)
    cures.append(Cure(f"a smaller batch: --batch-size {half}", {"batch_size": half}, script=f"a batch size of {half}"))
    return tuple(cures)


def _options(changes: Mapping[str, Any]) -> str:
    return shell_command(word for name, value in changes.items() for word in option_words(name, value))
