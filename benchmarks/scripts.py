"""Measures what ``accel-tui run`` takes of a script's ``fit``, compared with the same ``fit`` unrecorded.

    python benchmarks/scripts.py

Both are measured in turn in one process, which ``accel-tui run`` has started: a recorded ``fit`` and one that calls
Keras' own function. A ratio of 1.01 is one percent. Where noise hides it, the time within the recorder's callbacks,
which Keras calls in the training thread, says what recording takes.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

BATCH = 32

UNITS = {"a small MLP": 16, "an MLP of 512 units": 512}
"""Units of the two hidden layers."""


def fits(units: int, steps: int, rounds: int) -> None:
    """Print the seconds of each recorded and each plain ``fit``; runs under ``accel-tui run``."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import numpy as np

    random = np.random.default_rng(0)
    x, y = random.normal(size=(steps * BATCH, 64)).astype(np.float32), random.integers(0, 10, steps * BATCH)
    model = keras.Sequential(
        [
            keras.Input((64,)),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    recorded, plain = keras.Model.fit, keras.Model.fit.__wrapped__
    plain(model, x[:BATCH], y[:BATCH], verbose=0)
    taken: dict[str, list[float]] = {"recorded": [], "plain": [], "callbacks": []}
    _time_callbacks(taken["callbacks"])
    for number in range(rounds):
        for name, fit in (("recorded", recorded), ("plain", plain))[:: 1 if number % 2 else -1]:
            began = time.perf_counter()
            fit(model, x, y, batch_size=BATCH, verbose=0)
            taken[name].append(time.perf_counter() - began)
    print(json.dumps({**taken, "callbacks": sum(taken["callbacks"]) / sum(taken["recorded"])}), flush=True)


def _time_callbacks(taken: list[float]) -> None:
    """Add the seconds of each call of a recorder's callback."""
    from accel_engine import RunRecorder

    def timed(method: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: object, **named: object) -> None:
            began = time.perf_counter()
            method(*arguments, **named)
            taken.append(time.perf_counter() - began)

        return call

    for name in [name for name in vars(RunRecorder) if name.startswith("on_")]:
        setattr(RunRecorder, name, timed(getattr(RunRecorder, name)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--fit", type=int, metavar="UNITS", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        fits(arguments.fit, arguments.steps, arguments.rounds)
        return
    environment = os.environ | {"ACCEL_TUI_HOME": tempfile.mkdtemp(prefix="accel-tui-benchmark-")}
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"Python {platform.python_version()}, {os.cpu_count()} logical CPUs, {load}, {time.strftime('%Y-%m-%d')}")
    print("| model | `fit`, ms per step | recorded over plain, median | by the fastest | in callbacks, % of `fit` |")
    print("|---|---|---|---|---|")
    for name, units in UNITS.items():
        script = [__file__, "--fit", str(units), "--steps", str(arguments.steps), "--rounds", str(arguments.rounds)]
        command = [str(Path(sys.executable).with_name("accel-tui")), "run", *script]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        taken = json.loads(done.stdout.splitlines()[-1])
        ratios = [with_us / without for with_us, without in zip(taken["recorded"], taken["plain"], strict=True)]
        fastest = min(taken["recorded"]) / min(taken["plain"])
        step = 1e3 * statistics.median(taken["plain"]) / arguments.steps
        middle = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        print(f"| {name} | {step:.2f} | {middle} | {fastest:.3f} | {100 * taken['callbacks']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
