"""Measures what a step costs whose optimizer's state is in host memory, or divided over replicas.

    python benchmarks/optimizer_state.py [--widths 1024 2048] [--steps 10] [--rounds 5]

A stack of dense layers trains with Adam on one device, and as two replicas of ``mirrored``. The devices are GPUs, or
with fewer than two of them logical CPUs: the state is then copied within one memory. All ways take turns; medians are
printed.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from accel_engine.devices.device_types import Device
from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import slot_bytes_on_device
from accel_engine.plan.resolved_plan import resolve
from accel_engine.training.autotuning.mode_choice import plan_mode
from accel_engine.training.core.assembly import assemble
from accel_engine.training.core.batches import training_batches
from accel_engine.training.core.loop import Loop
from accel_engine.words import numbers

MODEL = """
import keras
from keras import layers

def build(input_shape, classes):
    hidden = [layers.Dense({width}, "relu") for _ in range(5)]
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), *hidden, layers.Dense(classes, "softmax")])
"""

ONE, TWO = {"strategy": "one-device"}, {"strategy": "mirrored"}

WAYS = {
    "one device, fused update": ONE,
    "one device, Keras' update": {**ONE, "layer_kernels": "off"},
    "one device, state in host memory": {**ONE, "optimizer_state": "host"},
    "two replicas": TWO,
    "two replicas, divided state": {**TWO, "optimizer_state": "sharded"},
    "two replicas, state in host memory": {**TWO, "optimizer_state": "host"},
}


def main() -> None:
    """Print the milliseconds of a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    is_gpu = len(tf.config.list_physical_devices("GPU")) > 1
    if not is_gpu:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    kind, fields = ("gpu", {}) if is_gpu else ("cpu", {"virtual_cpus": 2})
    machine = [Device("cpu:0", "cpu", "CPU"), *(Device(f"gpu:{n}", "gpu", "GPU") for n in range(2) if is_gpu)]
    print("| Weights | | State on a device, by the estimate | Step, ms |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for width in arguments.widths:
            file = Path(folder) / f"wide{width}.py"
            file.write_text(MODEL.format(width=width))
            plan = Plan(model=f"{file}:build", data="digits", batch_size=32, xla="off", **fields)
            ways = []
            for title, changes in WAYS.items():
                replicas = 2 if changes["strategy"] == "mirrored" else 1
                first = 2 - replicas  # the second of two CPUs stands in for a GPU
                own = {} if replicas > 1 else {"devices": (f"{kind}:{first}",)}
                resolved = resolve(plan.replace(**changes, **own), machine).check()
                names = tuple(f"{kind.upper()}:{index}" for index in range(first, 2))
                assembly = assemble(resolved, names, None)
                segment = next(iter(training_batches(assembly).segments(0, 0, lambda: arguments.steps)))
                ways.append((title, replicas, assembly, Loop(assembly, plan_mode(assembly)), segment, list[float]()))
            for number in range(arguments.rounds + 1):  # the first one compiles
                for _, _, _, loop, segment, seconds in ways:
                    begin = time.perf_counter()
                    for _ in loop.run(segment, 0, lambda _: arguments.steps):
                        pass
                    seconds += [(time.perf_counter() - begin) / arguments.steps] if number else []
            for title, replicas, assembly, _, _, seconds in ways:
                count = assembly.model.count_params()
                _, most = slot_bytes_on_device(assembly.plan, count, width * width, replicas)
                held = numbers.size(most)
                print(f"| {count:,} | {title} | {held} | {1000 * statistics.median(seconds):.1f} |", flush=True)


if __name__ == "__main__":
    main()
