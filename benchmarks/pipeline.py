"""Measures how long the stages of a pipeline wait for each other, against the formula of the bubble.

    python benchmarks/pipeline.py [--stages 2 4] [--micro-batches 2 4 8] [--steps 5] [--milliseconds 60]

The model has four layers that each take a given time forward and backward, in which they hold their stage. They sleep,
so that neither the number of processors nor other programs change what is measured much. It stands in for a model whose
stages take the same time: what is measured is the order in which TensorFlow runs the stages on logical CPUs, and what
it takes to send values between them; no arithmetic, and no accelerator.
"""

import argparse
import os
import tempfile
import time
from itertools import product
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from accel_engine.devices.device_types import Device
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.autotuning.mode_choice import plan_mode
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.batches import training_batches
from accel_engine.training.core.loop import Loop

LAYERS = 4

MODEL = f"""
import os, threading, time
import keras
import tensorflow as tf

SECONDS, STAGES = float(os.environ["STAGE_SECONDS"]), int(os.environ["STAGES"])
held = [threading.Lock() for _ in range(STAGES)]

class Takes(keras.layers.Layer):
    def call(self, x):
        lock = held[int(self.name[-1]) * STAGES // {LAYERS}]
        def take(values):
            with lock:
                time.sleep(SECONDS)
            return values
        def waiting(value):
            return tf.ensure_shape(tf.numpy_function(take, [value], value.dtype), value.shape)
        return tf.custom_gradient(lambda value: (waiting(value), waiting))(x)
    def compute_output_shape(self, shape):
        return shape

def build(input_shape, classes):
    parts = [keras.Input(input_shape), keras.layers.Flatten()]
    for number in range({LAYERS}):
        parts += [keras.layers.Dense(16, name=f"dense{{number}}"), Takes(name=f"takes{{number}}")]
    return keras.Sequential([*parts, keras.layers.Dense(classes, activation="softmax")])
"""


def step_seconds(folder: Path, stages: int, micro_batches: int, steps: int) -> float:
    """Seconds of a step in stages."""
    file = folder / f"takes{stages}.py"
    file.write_text(MODEL)
    os.environ["STAGES"] = str(stages)
    first = tuple(f"dense{number * LAYERS // stages}" for number in range(1, stages))
    plan = Plan(
        model=f"{file}:build", data="digits", batch_size=32, xla="off", micro_batches=micro_batches,
        strategy="pipeline", virtual_cpus=stages, stages=first,
    )  # fmt: skip
    resolved = resolve(plan, [Device("cpu:0", "cpu", "CPU")]).check()
    assembly = assemble(resolved, tuple(f"CPU:{index}" for index in range(stages)), None)
    loop, segment = (
        Loop(assembly, plan_mode(assembly)),
        next(iter(training_batches(assembly).segments(0, 0, lambda: 1))),
    )
    for _ in loop.run(segment, 0, lambda _: 1):  # the first step compiles
        pass
    begin = time.perf_counter()
    for _ in loop.run(segment, 1, lambda _: 1 + steps):
        pass
    return (time.perf_counter() - begin) / steps


def main() -> None:
    """Print the bubbles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", type=int, nargs="+", default=[2, 4], choices=(2, 4))
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=60.0)
    arguments = parser.parse_args()
    os.environ["STAGE_SECONDS"] = str(arguments.milliseconds / 1000)
    tf.config.threading.set_inter_op_parallelism_threads(16)  # sleeping takes a thread, not a processor
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * max(arguments.stages))
    print("| Stages | Micro-batches | Step, ms | Bubble by the formula | Bubble measured |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for stages, count in product(arguments.stages, arguments.micro_batches):
            seconds = step_seconds(Path(folder), stages, count, arguments.steps)
            busy = 2 * count * LAYERS / stages * arguments.milliseconds / 1000
            formula = (stages - 1) / (count + stages - 1)
            print(
                f"| {stages} | {count} | {1000 * seconds:.0f} | {formula:.0%} | {1 - busy / seconds:.0%} |", flush=True
            )


if __name__ == "__main__":
    main()
