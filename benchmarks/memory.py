"""Compares the estimate of memory with the peak resident memory of real trainings on a CPU.

    python benchmarks/memory.py [--only TEXT]

Each training is a separate engine process, with validation, checkpoints and the final model. Its peak is what the
kernel reports at its end (``ru_maxrss``). What a process takes that only imports TensorFlow and Keras is measured
three times first. ``accel-tui estimate`` makes the estimate.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from accel_engine.devices import detect
from accel_engine.plan import Plan, resolved_plan
from accel_engine.plan.memory_estimate import MemoryEstimate, estimate_memory
from accel_engine.process import engine_process
from accel_engine.process.engine_call import ask
from accel_engine.process.start_run import prepare_run
from accel_engine.requests.describe_model import ModelRequest
from accel_engine.run import RunReader, Status
from accel_tui.plan import memory_text

MIB = 1 << 20

PLANS: tuple[Mapping[str, Any], ...] = (
    {"model": "mlp", "data": "digits", "steps_per_epoch": 20},
    {"model": "mlp", "data": "synthetic:32x32x3:10:1000", "batch_size": 128, "optimizer": "sgd"},
    {"model": "mlp", "data": "synthetic:64x64x3:10:3000", "batch_size": 512, "optimizer": "rmsprop", "epochs": 3},
    {"model": "mlp", "data": "synthetic:224x224x3:10:600", "steps_per_epoch": 6},
    {"model": "mlp", "data": "synthetic:28x28x1:10:50000", "batch_size": 32, "epochs": 20, "xla": "auto"},
    {"model": "mlp", "data": "digits", "steps_per_epoch": 20, "xla": "on"},
    {"model": "linear", "data": "synthetic:32x32x3:10:20000", "batch_size": 128, "steps_per_epoch": 10},
    {"model": "cnn", "data": "synthetic:64x64x3:10:1000", "batch_size": 128, "steps_per_epoch": 6},
    {"model": "cnn", "data": "synthetic:32x32x3:10:4000", "batch_size": 256, "epochs": 3},
    {"model": "cnn", "data": "synthetic:32x32x3:10:1000", "steps_per_epoch": 4, "xla": "on"},
    {"model": "fashion-cnn", "data": "synthetic:28x28x1:10:1000", "batch_size": 500, "steps_per_epoch": 4},
    {"model": "fashion-cnn", "data": "synthetic:28x28x1:10:10000", "batch_size": 1000, "epochs": 2},
    {"model": "resnet20", "data": "synthetic:32x32x3:10:1000", "steps_per_epoch": 6},
    {"model": "resnet20", "data": "synthetic:32x32x3:10:2000", "batch_size": 128, "optimizer": "sgd", "momentum": 0.9},
    {"model": "resnet20", "data": "synthetic:32x32x3:10:1000", "batch_size": 256, "steps_per_epoch": 3},
    {
        "model": "resnet20",
        "data": "synthetic:32x32x3:10:1000",
        "batch_size": 256,
        "micro_batches": 4,
        "steps_per_epoch": 3,
    },
    {
        "model": "resnet20",
        "data": "synthetic:32x32x3:10:1000",
        "batch_size": 256,
        "precision": "mixed_bfloat16",
        "steps_per_epoch": 2,
    },
    {"model": "resnet20", "data": "synthetic:32x32x3:10:1000", "steps_per_epoch": 3, "xla": "on"},
    {"model": "vit", "data": "synthetic:64x64x3:10:1000", "batch_size": 128, "steps_per_epoch": 3},
    {"model": "vit", "data": "synthetic:64x64x3:10:1000", "batch_size": 128, "steps_per_epoch": 2, "xla": "on"},
    {
        "model": "vit",
        "data": "synthetic:96x96x3:10:1000",
        "micro_batches": 2,
        "optimizer": "adamw",
        "steps_per_epoch": 8,
    },
    {
        "model": "vit",
        "data": "synthetic:64x64x3:10:1000",
        "batch_size": 256,
        "precision": "mixed_bfloat16",
        "steps_per_epoch": 2,
    },
    {
        "model": "autoencoder",
        "task": "reconstruction",
        "data": "synthetic:64x64x3:10:1000",
        "batch_size": 128,
        "steps_per_epoch": 4,
    },
    {"model": "lstm", "data": "synthetic:100x28:10:1000", "batch_size": 256, "steps_per_epoch": 4},
    {"model": "lstm", "data": "synthetic:50x16:5:2000", "batch_size": 128, "epochs": 2},
    {"model": "tcn", "data": "synthetic:200x28:10:1000", "batch_size": 256, "steps_per_epoch": 4},
    {"model": "tcn", "data": "synthetic:300x12:5:1000", "batch_size": 128, "optimizer": "lion"},
    {"model": "MobileNetV2", "data": "synthetic:96x96x3:10:500", "batch_size": 32, "steps_per_epoch": 3},
    {
        "model": "MobileNetV2",
        "data": "synthetic:96x96x3:10:500",
        "micro_batches": 4,
        "optimizer": "sgd",
        "steps_per_epoch": 3,
    },
    {"model": "MobileNetV3Small", "data": "synthetic:128x128x3:10:300", "batch_size": 32, "steps_per_epoch": 8},
    {"model": "Xception", "data": "synthetic:96x96x3:10:500", "batch_size": 16, "steps_per_epoch": 3},
    {
        "model": "DenseNet121",
        "data": "synthetic:64x64x3:10:500",
        "batch_size": 32,
        "optimizer": "rmsprop",
        "steps_per_epoch": 2,
    },
    {"model": "ResNet50", "data": "synthetic:96x96x3:10:500", "batch_size": 16, "steps_per_epoch": 3},
    {
        "model": "ResNet50",
        "data": "synthetic:96x96x3:10:500",
        "batch_size": 16,
        "optimizer": "adamw",
        "ema_momentum": 0.99,
        "steps_per_epoch": 3,
    },
    {
        "model": "ResNet50V2",
        "data": "synthetic:64x64x3:10:300",
        "batch_size": 32,
        "precision": "mixed_bfloat16",
        "steps_per_epoch": 2,
    },
    {"model": "VGG16", "data": "synthetic:64x64x3:10:500", "batch_size": 16, "optimizer": "sgd", "steps_per_epoch": 2},
    {"model": "VGG16", "data": "synthetic:64x64x3:10:500", "batch_size": 16, "steps_per_epoch": 2},
    {
        "model": "ConvNeXtTiny",
        "data": "synthetic:64x64x3:10:500",
        "batch_size": 16,
        "optimizer": "lion",
        "steps_per_epoch": 2,
    },
)
"""The fields of each plan that differ from the defaults; one epoch without XLA unless they say otherwise."""


def imported_memory() -> int:
    """Bytes of a new process that has imported TensorFlow and Keras."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import tensorflow, keras"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return _peak(process)


def trained_memory(plan: Plan) -> int:
    """Bytes of a new engine process at its peak while it trains a plan."""
    directory = prepare_run(plan)
    peak = _peak(engine_process.start_engine(directory))
    with closing(RunReader(directory)) as reader:
        if reader.info().status is not Status.FINISHED:
            raise SystemExit(f"{plan.command()} failed: see {directory}")
    return peak


def estimated_memory(plan: Plan) -> MemoryEstimate:
    """The estimate of a plan."""
    resolved = resolved_plan.resolve_to_train(plan, detect().devices)
    training = memory_text.training_of(resolved, ask(ModelRequest(resolved.plan)))
    assert training
    return estimate_memory(training)


def _peak(process: "subprocess.Popen[Any]") -> int:
    """Wait for the end of a process; returns its peak resident memory in bytes."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024


def main() -> None:
    """Measure all plans, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only plans whose options contain this text")
    only = parser.parse_args().only
    os.environ["ACCEL_TUI_HOME"] = tempfile.mkdtemp(prefix="accel-tui-memory-")
    imported = [imported_memory() for _ in range(3)]
    print("TensorFlow and Keras imported, MiB:", ", ".join(f"{each / MIB:.0f}" for each in imported))
    base = statistics.median(imported)
    print("| plan | more than imported, MiB | peak, MiB | estimate, MiB | peak / middle |\n|---|---|---|---|---|")
    inside, ratios = 0, []
    for fields in PLANS:
        plan = Plan.from_mapping({"epochs": 1, "xla": "off", **fields})
        options = " ".join(f"{name}={value}" for name, value in fields.items())
        if only not in options:
            continue
        estimate, peak = estimated_memory(plan), trained_memory(plan)
        inside += estimate.low <= peak <= estimate.high
        ratios.append(2 * peak / (estimate.low + estimate.high))
        print(
            f"| `{options}` | {(peak - base) / MIB:.0f} | {peak / MIB:.0f} "
            f"| {estimate.low / MIB:.0f} to {estimate.high / MIB:.0f} | {ratios[-1]:.2f} |",
            flush=True,
        )
    print(f"{inside} of {len(ratios)} peaks lie in the range; peak / middle {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
