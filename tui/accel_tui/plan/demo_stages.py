"""The stages of the demo for a machine, and the analysis of their results."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError
from accel_engine.plan import Plan, resolved_plan
from accel_engine.run import Chunk
from accel_tui.formatting import numbers

TAG = "demo"
"""The tag of the runs of the demo."""

WARM_UP = 1.0
"""Seconds of training from the first step that are excluded from rates."""

TOLERANCE = 0.02
"""The largest difference between accuracies that count as equal."""

WINDOW = 100
"""The maximum number of steps that an accuracy is averaged over."""

_MIN_STEPS = 20
"""The minimum number of steps to compare accuracies."""

_CPU_PLAN = Plan(model="mlp", data="synthetic:28x28x1:100:20000", batch_size=256)
_ACCELERATOR_PLAN = Plan(model="resnet20", data="synthetic:32x32x3:10:20000", batch_size=256)

_ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "1"}

_OWN_THREADS = {"TF_NUM_INTRAOP_THREADS": "0"}
"""TensorFlow's own number of threads per operation, also where earlier runs were faster with another one."""


CLEARLY_SLOWER = 0.95
"""The share of the first stage's rate below which a stage is called slower."""


@dataclass(frozen=True, slots=True)
class DemoStage:
    """A configuration of the demo: a device, a strategy and a precision.

    Attributes:
        title: A short name.
        plan: The plan to train.
        environment: Additional environment variables of the engine.
        drawback: Why it can be slower than the first stage; empty if it should not be.
    """

    title: str
    plan: Plan
    environment: Mapping[str, str] = field(default_factory=dict)
    drawback: str = ""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The measurement of a stage.

    Attributes:
        stage: The stage.
        run: The id of its run.
        rate: Steps per second after the warm-up; ``None`` if not measured.
        seconds: Seconds of training that the rate was measured over.
        accuracies: The accuracy of every recorded step.
        problem: Why there is no rate.
    """

    stage: DemoStage
    run: str
    rate: float | None = None
    seconds: float = 0.0
    accuracies: Sequence[float] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Agreement:
    """A comparison of the accuracies of stages after equally many steps.

    Attributes:
        steps: The number of steps that every stage has completed.
        window: The number of last steps that each accuracy is averaged over.
        accuracies: The accuracy of each stage by title.
    """

    steps: int
    window: int
    accuracies: Mapping[str, float]

    @property
    def agree(self) -> bool:
        """Whether all accuracies are equal within the tolerance."""
        values = self.accuracies.values()
        return all(abs(each - other) <= TOLERANCE for each in values for other in values)  # false for NaN


def stages(devices: Sequence[Device]) -> tuple[DemoStage, ...]:
    """Return the stages that fit a machine; the first one is the baseline.

    Args:
        devices: The devices of the machine.
    """
    gpus = sum(device.kind == "gpu" for device in devices)
    accelerated = any(device.kind != "cpu" for device in devices)
    cores = next((device.cores for device in devices if device.kind == "cpu"), 0)
    base = _ACCELERATOR_PLAN if accelerated else _CPU_PLAN
    # Longer than the demo takes, but finite in case that nothing stops it.
    base = base.replace(steps_per_epoch=2000, epochs=50, validation="off", xla="off")
    found: list[DemoStage] = []

    def add(title: str, environment: Mapping[str, str] | None = None, drawback: str = "", **fields: Any) -> None:
        name = f"{TAG}-{title.replace(',', '').replace(' ', '-').lower()}"
        found.append(DemoStage(title, base.replace(name=name, **fields), environment or {}, drawback))

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
        all_cores = "small operations are not worth dividing, and other programs use the cores, too"
        add(f"all {cores} cores" if cores > 1 else "CPU", _OWN_THREADS, all_cores)
        if cores > 1:
            add("one thread per operation", drawback="few operations of this model can run side by side", threads=1)
        add("XLA", drawback="on a CPU its large operations are slower than oneDNN's", xla="on")
        converted = "a processor without bfloat16 instructions converts every value"
        add("bfloat16", drawback=converted, precision="mixed_bfloat16")
        if cores > 1:
            shared = "both replicas share the same cores, so only the cost of the strategy shows"
            add("CPU in two, mirrored", drawback=shared, strategy="mirrored", virtual_cpus=2)
    return tuple(stage for stage in found if _fits(stage.plan, devices))


def drawbacks(results: Sequence[DemoResult]) -> list[str]:
    """Why stages can be slower than the first one, a line for each that was."""
    measured = [(result.stage, result.rate) for result in results if result.rate is not None]
    return [
        f"{stage.title} can be slower: {stage.drawback}"
        for stage, rate in measured[1:]
        if stage.drawback and rate < CLEARLY_SLOWER * measured[0][1]
    ]


def rate(chunks: Sequence[Chunk]) -> tuple[float | None, float]:
    """Return steps per second after the warm-up (``None`` if there are none) and the seconds they took."""
    steps, seconds = 0, 0.0
    for before, chunk in pairwise(chunks):
        if chunk.started >= chunks[0].started + WARM_UP:
            steps += chunk.count
            # Chunks may overlap; gaps between them, such as checkpoints, are not training.
            seconds += chunk.ended - max(chunk.started, min(before.ended, chunk.ended))
    return (steps / seconds if seconds > 0 else None), seconds


def agreement(results: Sequence[DemoResult]) -> Agreement | None:
    """Compare accuracies after equally many steps; return ``None`` with fewer than two stages or too few steps."""
    measured = [result for result in results if result.rate is not None and len(result.accuracies)]
    steps = min((len(result.accuracies) for result in measured), default=0)
    if len(measured) < 2 or steps < _MIN_STEPS:
        return None
    window = min(WINDOW, steps // 2)
    return Agreement(
        steps,
        window,
        {result.stage.title: statistics.fmean(result.accuracies[steps - window : steps]) for result in measured},
    )


def bars(results: Sequence[DemoResult], width: int, full: str = "\u2588") -> list[str]:
    """Draw the rates as bars, one line per stage, with the speed-up over the first measured stage.

    Args:
        results: The results of the stages.
        width: The width of a line in columns.
        full: The character of the bars.
    """
    rates = [result.rate for result in results if result.rate is not None]
    names = max((len(result.stage.title) for result in results), default=0)
    available = max(width - names - 30, 4)
    lines = []
    for result in results:
        name = result.stage.title.ljust(names)
        if result.rate is None:
            lines.append(f"{name}  {result.problem}")
            continue
        bar = full * max(round(available * result.rate / max(rates)), 1)
        lines.append(
            f"{name}  {bar:{available}}  {numbers.compact(result.rate):>10} steps/s {result.rate / rates[0]:6.2f}x"
        )
    return lines


def _fits(plan: Plan, devices: Sequence[Device]) -> bool:
    try:
        resolved_plan.check(plan, devices)
    except AccelError:
        return False
    return True
