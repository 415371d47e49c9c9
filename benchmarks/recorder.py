"""Measures the cost per step of recording a script: ``RunRecorder`` compared with ``wandb.log``, and ``Recorder``.

    python benchmarks/recorder.py --wandb PYTHON-WITH-WANDB
    python benchmarks/recorder.py --loop

``RunRecorder.on_train_batch_end`` is timed in a real ``fit`` of a small model, ``wandb.log`` in a process that logs the
same two values at the rate of that ``fit``. They are measured in turn. ``Recorder.log`` is timed in a custom loop.
"""

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BATCH = 32

LAYERS = {"small": 16, "large": 256}
"""Units of the hidden layers."""


def fit(steps: int, units: int) -> dict[str, float]:
    """Train with the callback; returns steps per second and the callback's microseconds per step."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import numpy as np

    from accel_engine import RunRecorder

    class Timed(RunRecorder):
        taken: list[float]
        began = 0.0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            before = time.perf_counter()
            super().on_train_batch_end(batch, logs)
            self.taken.append(time.perf_counter() - before)
            self.began = self.began or time.perf_counter()  # without the first, which includes tracing

    x, y = np.zeros((steps * BATCH, 64), np.float32), np.zeros(steps * BATCH)
    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    recorder = Timed()
    recorder.taken = []
    model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[recorder])
    rate = (steps - 1) / (time.perf_counter() - recorder.began)
    return {"rate": rate, "microseconds": 1e6 * statistics.mean(recorder.taken[1:])}


def log(steps: int, rate: float) -> dict[str, float]:
    """Log with wandb, offline, at a rate in steps per second; returns microseconds per step."""
    import wandb

    run = wandb.init(mode="offline", dir=tempfile.mkdtemp(), settings=wandb.Settings(silent=True))
    spent, began = 0.0, time.perf_counter()
    for step in range(steps):
        time.sleep(max(0.0, began + step / rate - time.perf_counter()))
        before = time.perf_counter()
        run.log({"loss": 1.0 / (step + 1), "accuracy": 0.5})
        spent += time.perf_counter() - before
    return {"rate": rate, "microseconds": 1e6 * spent / steps}


def loop(rounds: int) -> None:
    """Time ``Recorder.log``, 1,000 calls per round; between the rounds, the recorder thread writes them."""
    import numpy as np

    from accel_engine import Recorder

    print("| values | `Recorder.log`, µs per call | of these on the processor |")
    print("|---|---|---|")
    with Recorder("benchmark") as run:
        steps = itertools.count()
        for count in (2, 10):
            for name, kind in (("Python floats", float), ("NumPy scalars", np.float32)):
                values = {f"value_{number}": kind(number) for number in range(count)}
                taken, worked = [], []
                for _ in range(rounds):
                    began, began_working = time.perf_counter(), time.thread_time()
                    for step in itertools.islice(steps, 1000):
                        run.log(step, **values)
                    worked.append(1e3 * (time.thread_time() - began_working))
                    taken.append(1e3 * (time.perf_counter() - began))
                    time.sleep(0.5)
                print(f"| {count} {name} | {_range(taken)} | {_range(worked)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wandb", type=Path, help="a Python with wandb; default: measure RunRecorder only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--loop", action="store_true", help="measure Recorder only")
    parser.add_argument("--fit", type=int, metavar="UNITS", help=argparse.SUPPRESS)
    parser.add_argument("--log", type=float, metavar="RATE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit or arguments.log:
        steps = arguments.steps
        print(json.dumps(fit(steps, arguments.fit) if arguments.fit else log(steps, arguments.log)), flush=True)
        return
    os.environ["ACCEL_TUI_HOME"] = tempfile.mkdtemp(prefix="accel-tui-benchmark-")

    def measure(python: object, *options: object) -> dict[str, float]:
        command = [str(word) for word in (python, __file__, "--steps", arguments.steps, *options)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout.splitlines()[-1]))

    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"Python {platform.python_version()}, {os.cpu_count()} logical CPUs, {load}, {time.strftime('%Y-%m-%d')}")
    if arguments.loop:
        loop(arguments.rounds)
        return
    print("| model | steps/s | ours, µs per step | `wandb.log`, µs per step |")
    print("|---|---|---|---|")
    for name, units in LAYERS.items():
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            ours.append(measure(sys.executable, "--fit", units))
            if arguments.wandb:
                theirs.append(measure(arguments.wandb, "--log", ours[-1]["rate"]))
        rate = statistics.median(each["rate"] for each in ours)
        print(f"| {name} | {rate:.0f} | {_cell(ours)} | {_cell(theirs)} |", flush=True)


def _cell(measured: list[dict[str, float]]) -> str:
    return _range([each["microseconds"] for each in measured]) if measured else "not measured"


def _range(values: list[float]) -> str:
    """The median with the minimum and the maximum."""
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


if __name__ == "__main__":
    main()
