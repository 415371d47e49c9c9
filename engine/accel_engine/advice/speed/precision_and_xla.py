"""Settings of a plan that are slow on the run's devices: the precision, XLA, and what a race has found."""

from collections.abc import Iterator

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, Gain, speed_finding
from accel_engine.advice.recorded import Recorded
from accel_engine.plan.changed_plan import options_text
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.words.numbers import percent

MIN_FLOPS = 1e10
"""FLOPs of a step from which its matrix products take most of its time on a GPU."""

MIN_STEPS = 200
"""Steps of a run from which its speed matters."""


def half_on_cpu(recorded: Recorded) -> Iterator[Finding]:
    """A CPU trains in float16, which it has no fast instructions for."""
    if recorded.device_kinds != {"cpu"} or _precision(recorded) != "mixed_float16":
        return
    yield speed_finding(
        id="float16-on-cpu",
        title="mixed_float16 is far slower than float32 on a CPU",
        evidence=(Evidence("the precision is mixed_float16, and the run trains on CPUs", THROUGHPUT),),
        confidence=Confidence.CERTAIN,
        cost="most of the time",
        cures=(
            Cure(
                "use float32: --precision float32",
                {"precision": "float32", "force": "off"},
                script='use float32: keras.config.set_dtype_policy("float32")',
            ),
        ),
        weight=0.9,
    )


def float32_on_gpu(recorded: Recorded) -> Iterator[Finding]:
    """A GPU trains a model of large matrix products in float32.

    TensorFlow computes these in TF32 on GPUs that have it, of which bfloat16 has twice the peak. Source: NVIDIA's data
    sheets.
    """
    work = recorded.history.work
    if "gpu" not in recorded.device_kinds or _precision(recorded) != "float32" or recorded.steps < MIN_STEPS:
        return
    if work is None or work.flops is None or work.flops < MIN_FLOPS or not _busy(recorded):
        return
    yield speed_finding(
        id="float32-on-gpu",
        title="Mixed precision may be faster than float32 here",
        evidence=(Evidence(f"{work.flops / 1e9:,.1f} GFLOPs of matrix products and convolutions a step", THROUGHPUT),),
        confidence=Confidence.POSSIBLE,
        cost="up to half of the time",
        cures=(
            Cure(
                "use mixed precision: --precision mixed_bfloat16",
                {"precision": "mixed_bfloat16"},
                script='use mixed precision: keras.config.set_dtype_policy("mixed_bfloat16")',
                gain=Gain("up to twice the steps per second", "the peaks in the GPU's data sheet", 1.5),
            ),
        ),
        weight=0.4,
    )


def without_xla(recorded: Recorded) -> Iterator[Finding]:
    """An accelerator trains without XLA because the plan says so, and nobody has measured whether that is faster."""
    plan = recorded.plan
    if plan is None or plan.xla != "off" or recorded.history.xla or recorded.steps < MIN_STEPS:
        return
    if not recorded.device_kinds & {"gpu"}:
        return
    yield speed_finding(
        id="xla-off",
        title="XLA is off, and was not tried",
        evidence=(Evidence("the plan has xla = off", THROUGHPUT),),
        confidence=Confidence.POSSIBLE,
        cost="unknown: it depends on the model",
        cures=(Cure("let the run measure it: --xla auto", {"xla": "auto"}, script="compile(jit_compile=True)"),),
        weight=0.3,
    )


def _precision(recorded: Recorded) -> str:
    return recorded.built.precision if recorded.built else ""


def _busy(recorded: Recorded) -> bool:
    """Whether a GPU is busy most of the time, so that computing is what takes it."""
    for device in recorded.devices:
        if device.startswith("gpu"):
            _, used = recorded.readings(device, "utilization")
            return len(used) >= 3 and float(sorted(used)[len(used) // 2]) > 60
    return False


def raced_faster(recorded: Recorded) -> Iterator[Finding]:
    """A race of the run's plan on this machine found a faster configuration."""
    found = recorded.faster
    if found is None or found.factor <= 1:
        return
    options, factor = options_text(found.changes), f"{found.factor:.2f} times"
    yield speed_finding(
        id="raced-faster",
        title="A race found a faster configuration of this plan",
        evidence=(Evidence(f"{options}: {factor} the examples per second, in turns on this machine", THROUGHPUT),),
        confidence=Confidence.LIKELY,
        cost=f"{percent(1 - 1 / found.factor)} of the time of steps",
        cures=(
            Cure(
                f"train with {options}",
                found.changes,
                gain=Gain(f"{factor} the steps per second", "a race on this machine", found.factor),
            ),
        ),
        weight=1 - 1 / found.factor,
    )
