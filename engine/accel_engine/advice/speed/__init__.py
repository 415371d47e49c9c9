"""Rules of advice on runs that are slow."""

from accel_engine.advice.rule import Rule
from accel_engine.advice.speed.accelerators import idle_device, tpu_padding, underused_accelerator, unused_accelerator
from accel_engine.advice.speed.input_wait import input_wait
from accel_engine.advice.speed.interruptions import frequent_checkpoints, frequent_validation, retracing
from accel_engine.advice.speed.machine_load import neighbours, swapping, throttling
from accel_engine.advice.speed.pipelines import few_micro_batches, uneven_stages
from accel_engine.advice.speed.precision_and_xla import float32_on_gpu, half_on_cpu, raced_faster, without_xla
from accel_engine.advice.speed.stragglers import stragglers

RULES: tuple[Rule, ...] = (
    input_wait,
    frequent_validation,
    frequent_checkpoints,
    retracing,
    unused_accelerator,
    underused_accelerator,
    idle_device,
    throttling,
    neighbours,
    swapping,
    half_on_cpu,
    float32_on_gpu,
    without_xla,
    tpu_padding,
    stragglers,
    few_micro_batches,
    uneven_stages,
    raced_faster,
)
