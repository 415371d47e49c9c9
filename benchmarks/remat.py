"""Measures the memory and the speed of training with rematerialization and without it.

    python benchmarks/remat.py [--work resnet ...] [--xla on] [--steps 3]

Each row is a separate process, which trains some steps of a plan in the engine's loop. Memory is the peak of its
resident memory (VmHWM) above that before the first step. With XLA, the buffers of the compiled step are also given,
from its buffer assignment: compiling takes memory too.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()

WORKS = {
    "resnet": (f"{HERE}:resnet", "synthetic:32x32x3:10:1024", 256),
    "gpt": (f"{HERE}:gpt", f"{HERE}:tokens", 64),
    "perceptron": (f"{HERE}:perceptron", "synthetic:16x16x1:10:4096", 2048),
}
"""Model, data and batch size."""


def resnet(input_shape: Any, classes: int) -> Any:
    """A residual network of 16 blocks of two convolutions with batch normalization, 34 layers."""
    import keras
    from keras import layers

    inputs = keras.Input(input_shape)
    x = layers.Conv2D(16, 3, padding="same")(inputs)
    for _ in range(16):
        residual = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same", use_bias=False)(x)))
        residual = layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same", use_bias=False)(residual))
        x = layers.ReLU()(layers.Add()([x, residual]))
    return keras.Model(inputs, layers.Dense(classes, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def gpt() -> Any:
    """A transformer of 8 layers of width 128, compiled."""
    import keras
    from keras import layers

    inputs = keras.Input((64,), dtype="int32")
    x = layers.Embedding(64, 128)(inputs)
    for _ in range(8):
        normalized = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, 32)(normalized, normalized, use_causal_mask=True)])
        hidden = layers.Dense(512, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dropout(0.1)(layers.Dense(128)(hidden))])
    model = keras.Model(inputs, layers.Dense(64)(layers.LayerNormalization()(x)))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def tokens() -> Any:
    """Sequences of 64 tokens of 64, and the tokens that follow."""
    import numpy as np

    text = np.random.default_rng(0).integers(0, 64, (512, 65), "int32")
    return text[:, :-1], text[:, 1:]


def perceptron(input_shape: Any, classes: int) -> Any:
    """A residual perceptron of 24 blocks of two dense layers."""
    import keras
    from keras import layers

    inputs = keras.Input(input_shape)
    x = layers.Flatten()(inputs)
    for _ in range(24):
        x = layers.Add()([x, layers.Dense(256)(layers.Dense(1024, "gelu")(x))])
    return keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))


def peak() -> int:
    """The peak of this process's resident memory in bytes."""
    (kibibytes,) = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return 1024 * int(kibibytes)


def buffer_bytes(directory: Path) -> int:
    """Bytes of the largest program's buffers that XLA has dumped to a directory; 0 without programs."""
    texts = [path.read_text() for path in directory.glob("*buffer-assignment.txt")]
    return max((int(size) for text in texts for size in re.findall(r"Total bytes used: (\d+)", text)), default=0)


def measure(work: str, remat: str, xla: str, steps: int) -> dict[str, Any]:
    """Train some steps in this process; returns its memory in MiB and the milliseconds of a step."""
    from accel_engine.engine_main import tensorflow_import

    tensorflow_import.prepare()
    dumped = Path(tempfile.mkdtemp())
    if xla == "on":
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={dumped} --xla_dump_hlo_as_text"
        os.environ["XLA_FLAGS"] = flags.strip()
    from accel_engine.plan import Plan
    from accel_engine.training.core.loop import ExecutionMode
    from engine_loop import make_loop

    model, data, batch = WORKS[work]
    plan = Plan(model=model, data=data, batch_size=batch, validation="off", xla=xla, remat=remat, last_batch="drop")
    loop, segment, assembly = make_loop(plan, ExecutionMode(xla == "on"))
    before = peak()
    loop.trace(segment)
    next(loop.run(segment, 0, lambda _: 1))
    began = time.perf_counter()
    for _ in range(steps):
        next(loop.run(segment, 0, lambda _: 1))
    seconds = time.perf_counter() - began
    mib = 1 << 20
    return {
        "parts": assembly.remat.count,
        "peak": (peak() - before) / mib,
        "buffers": buffer_bytes(dumped) / mib,
        "ms": 1000 * seconds / steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="append", choices=WORKS, help="default: all")
    parser.add_argument("--xla", choices=("on", "off"), action="append", help="default: both")
    parser.add_argument("--steps", type=int, default=3, help="steps that are timed")
    parser.add_argument("--one", choices=("on", "off"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    works, modes = arguments.work or list(WORKS), arguments.xla or ["off", "on"]
    if arguments.one:
        print(json.dumps(measure(works[0], arguments.one, modes[0], arguments.steps)))
        return
    print("| work | XLA | remat | parts | peak, MiB | XLA's buffers, MiB | ms per step |")
    print("|---|---|---|---|---|---|---|")
    for work in works:
        for xla in modes:
            for remat in ("off", "on"):
                options = ["--work", work, "--xla", xla, "--steps", str(arguments.steps), "--one", remat]
                process = subprocess.run([sys.executable, str(HERE), *options], stdout=subprocess.PIPE, check=True)
                found = json.loads(process.stdout.splitlines()[-1])
                buffers = f"{found['buffers']:.0f}" if xla == "on" else "-"
                row = [f"`{work}`", xla, remat, found["parts"], f"{found['peak']:.0f}", buffers, f"{found['ms']:.0f}"]
                print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
