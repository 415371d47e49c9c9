"""Measures what a step costs whose optimizer has its state in host memory.

    python benchmarks/offload.py [--widths 1024 2048] [--steps 10] [--rounds 5]

A stack of dense layers trains with Adam on the first GPU, or without one on the second of two logical CPUs, which
stands in for it: the state is then copied within the same memory. Both ways take turns; medians are printed.
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
from accel_engine.plan.array_bytes import slot_bytes, slot_bytes_on_device
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

STATES = {
    "none, fused update": {},
    "none, Keras' update": {"layer_kernels": "off"},
    "optimizer": {"offload": "optimizer"},
}


def main() -> None:
    """Print the milliseconds of a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", type=int, nargs="+", default=[1024, 2048])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    is_gpu = bool(tf.config.list_physical_devices("GPU"))
    if not is_gpu:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    device, fields = ("GPU:0", {}) if is_gpu else ("CPU:1", {"virtual_cpus": 2, "devices": ("cpu:1",)})
    machine = [Device("cpu:0", "cpu", "CPU"), *([Device("gpu:0", "gpu", "GPU")] if is_gpu else [])]
    print("| Width | Weights | Offload | State on the device, by the estimate | Step, ms |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for width in arguments.widths:
            file = Path(folder) / f"wide{width}.py"
            file.write_text(MODEL.format(width=width))
            plan = Plan(model=f"{file}:build", data="digits", batch_size=32, xla="off", **fields)
            ways = []
            for title, changes in STATES.items():
                resolved = resolve(plan.replace(**changes), machine).check()
                assembly = assemble(resolved, (device,), None)
                segment = next(iter(training_batches(assembly).segments(0, 0, lambda: arguments.steps)))
                ways.append((title, assembly, Loop(assembly, plan_mode(assembly)), segment, list[float]()))
            for number in range(arguments.rounds + 1):  # the first one compiles
                for _, _, loop, segment, seconds in ways:
                    begin = time.perf_counter()
                    for _ in loop.run(segment, 0, lambda _: arguments.steps):
                        pass
                    seconds += [(time.perf_counter() - begin) / arguments.steps] if number else []
            for title, assembly, _, _, seconds in ways:
                count = assembly.model.count_params()
                held = slot_bytes_on_device(assembly.plan, count, width * width)
                held = held if assembly.plan.offload != "none" else slot_bytes(assembly.plan, count)
                step = f"{1000 * statistics.median(seconds):.0f}"
                print(f"| {width} | {count:,} | {title} | {numbers.size(held)} | {step} |", flush=True)


if __name__ == "__main__":
    main()
