"""What a demonstration trains on a machine, one act after another, and what the figures come to. Nothing runs here."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from accel_engine import preflight
from accel_engine.devices.reading import Device
from accel_engine.errors import AccelError
from accel_engine.plan import Plan
from accel_engine.run import Chunk

TAG = "demo"
"""What the runs of a demonstration are tagged with."""

WARM_UP = 1.0
"""Seconds of training, from the first step on, that no rate counts."""

ALIKE = 0.02
"""Accuracies count as the same that are no further apart."""

WINDOW = 100
"""Steps that an accuracy is the mean of, at most."""

_FEWEST = 20

_LIGHT = Plan(model="mlp", data="synthetic:28x28x1:100:20000", batch_size=256)
_HEAVY = Plan(model="resnet20", data="synthetic:32x32x3:10:20000", batch_size=256)

_ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class DemoStage:
    """One way to train the model.

    Attributes:
        title: What it is called, in a few words.
        plan: What is trained.
        environment: What its engine finds in its environment beside what is there.
    """

    title: str
    plan: Plan
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What an act came to.

    Attributes:
        act: The act.
        run: Its run's id.
        rate: Steps a second, without the warm-up; ``None`` where nothing was measured.
        seconds: Of training that the rate was measured over.
        accuracies: Of every step from the first, as far as it was recorded.
        problem: Why nothing was measured.
    """

    act: DemoStage
    run: str
    rate: float | None = None
    seconds: float = 0.0
    accuracies: Sequence[float] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether all ways learn the same.

    Attributes:
        steps: Steps that each of them has taken.
        window: How many of the last of these each accuracy is the mean of.
        accuracies: One for each result that has any.
    """

    steps: int
    window: int
    accuracies: Mapping[str, float]

    @property
    def alike(self) -> bool:
        """Whether they are the same as far as that can be told."""
        found = self.accuracies.values()
        return all(abs(each - other) <= ALIKE for each in found for other in found)  # false for what is no number


def acts(devices: Sequence[Device]) -> tuple[DemoStage, ...]:
    """Choose what fits a machine; the first act is what the others are compared with.

    Args:
        devices: The machine's.
    """
    gpus = sum(device.kind == "gpu" for device in devices)
    accelerated = any(device.kind != "cpu" for device in devices)
    cores = next((device.cores for device in devices if device.kind == "cpu"), 0)
    base = _HEAVY if accelerated else _LIGHT
    # Longer than a demonstration takes, and with an end even if nobody is there to stop it.
    base = base.replace(steps_per_epoch=2000, epochs=50, validation="off", xla="off")
    chosen: list[DemoStage] = []

    def add(title: str, environment: Mapping[str, str] | None = None, **fields: Any) -> None:
        name = f"{TAG}-{title.replace(',', '').replace(' ', '-').lower()}"
        chosen.append(DemoStage(title, base.replace(name=name, **fields), environment or {}))

    if accelerated:
        add("CPU", strategy="one-device", devices=("cpu:0",))
        if gpus:
            one: dict[str, Any] = {"strategy": "one-device", "devices": ("gpu:0",)}
            add("one GPU", **one)
            add("one GPU, XLA", **one, xla="on")
            add("one GPU, mixed precision", **one, precision="mixed_float16")
        if gpus > 1:
            add(f"{gpus} GPUs", strategy="mirrored")
            add(f"{gpus} GPUs, mixed precision", strategy="mirrored", precision="mixed_float16")
        add("TPU", strategy="tpu", xla="auto")
    else:
        if cores > 1:
            add("one thread", _ONE_THREAD)
        add(f"all {cores} cores" if cores > 1 else "CPU")
        add("XLA", xla="on")
        add("bfloat16", precision="mixed_bfloat16")
        if cores > 1:
            add("CPU in two, mirrored", strategy="mirrored", virtual_cpus=2)
    return tuple(act for act in chosen if _fits(act.plan, devices))


def rate(chunks: Sequence[Chunk]) -> tuple[float | None, float]:
    """Steps a second after the warm-up, and the seconds of training that they took; ``None`` where there are none."""
    steps, seconds = 0, 0.0
    for before, chunk in pairwise(chunks):
        if chunk.started >= chunks[0].started + WARM_UP:
            steps += chunk.count
            # Dispatches may overlap; what is between them, such as a checkpoint, is no training.
            seconds += chunk.ended - max(chunk.started, min(before.ended, chunk.ended))
    return (steps / seconds if seconds > 0 else None), seconds


def agreement(results: Sequence[DemoResult]) -> Agreement | None:
    """Compare what was learned after as many steps; ``None`` where there is nothing to compare."""
    learned = [result for result in results if result.rate is not None and len(result.accuracies)]
    steps = min((len(result.accuracies) for result in learned), default=0)
    if len(learned) < 2 or steps < _FEWEST:
        return None
    window = min(WINDOW, steps // 2)
    return Agreement(
        steps,
        window,
        {result.act.title: statistics.fmean(result.accuracies[steps - window : steps]) for result in learned},
    )


def bars(results: Sequence[DemoResult], width: int, full: str = "\u2588") -> list[str]:
    """Draw the rates: a line each, with the speed-up over the first that was measured.

    Args:
        results: What the acts came to.
        width: Columns of a line.
        full: What bars are made of.
    """
    rates = [result.rate for result in results if result.rate is not None]
    names = max((len(result.act.title) for result in results), default=0)
    room = max(width - names - 30, 4)
    lines = []
    for result in results:
        name = result.act.title.ljust(names)
        if result.rate is None:
            lines.append(f"{name}  {result.problem}")
            continue
        bar = full * max(round(room * result.rate / max(rates)), 1)
        lines.append(f"{name}  {bar:{room}}  {result.rate:10,.1f} steps/s {result.rate / rates[0]:6.2f}x")
    return lines


def _fits(plan: Plan, devices: Sequence[Device]) -> bool:
    try:
        preflight.check(plan, devices)
    except AccelError:
        return False
    return True
