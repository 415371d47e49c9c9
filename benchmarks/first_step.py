"""Measures the time to the first loss, compared with a plain Keras script, and to the dashboard's first frame.

    python benchmarks/first_step.py [--times 5]

Trains `mlp` on `digits`. The dashboard runs in a pseudo-terminal; its engine has already imported TensorFlow. The time
is from the key to the first loss on the screen, broken down by the run's events. "Cold" is `accel-tui train`, which
imports TensorFlow first. The script's time is from the start of its process to the printed loss of the first batch.
The dashboard's times are from the start of its process to its first whole frame, and to the answer to the key `/`,
which was sent as the process started. All are measured in turn, after an unmeasured start that fills Python's caches.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise

from terminal import Terminal

SCRIPT = """
import os, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
from accel_engine import data
from accel_engine.models.build import build
from accel_engine.models.loaded_data import describe_data
dataset = data.load("digits", data.DataOptions())
model = build("mlp", describe_data(dataset, "auto"))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
class PrintLoss(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print("loss", logs["loss"], flush=True)
        os._exit(0)
x = dataset.train.inputs.astype("float32") / 255
model.fit(x, dataset.train.targets, batch_size=64, verbose=0, callbacks=[PrintLoss()])
"""
"""A script of ten lines, with our data and model, so that they are the same."""

FIRST_LOSS = re.compile(r"loss ━━ (?:step )?[0-9.]+")


def script() -> float:
    """Seconds from the script's start to its first loss."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout
    if not process.stdout.readline().startswith(b"loss"):
        raise SystemExit("the script failed: run it by hand")
    seconds = time.perf_counter() - began
    process.wait()
    return seconds


def cold() -> dict[str, float]:
    """Seconds from the start of ``accel-tui train`` to its first loss, in total (``all``) and by phase."""
    at = time.time()
    command = [sys.executable, "-m", "accel_tui", "train", "--model", "mlp", "--validation", "off", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout
    phases = []
    for event in map(json.loads, process.stdout):
        if event["event"] == "phase_changed":
            phases.append((event["phase"], event["time"]))
        elif event["event"] == "steps":
            break
    seconds = time.time() - at
    process.kill()
    process.wait()
    return parts_of(phases, at, event["time"]) | {"all": seconds}


def parts_of(phases: Sequence[tuple[str, float]], began: float, ended: float) -> dict[str, float]:
    """Seconds of each phase up to the end of the first chunk.

    Args:
        phases: Names and start times.
        began: When Start was pressed or the command started.
        ended: When the first chunk ended.
    """
    parts = {"handing over": phases[0][1] - began}
    for (name, start), (_, end) in pairwise([*phases, ("", ended)]):
        if start < ended:
            name = "the first chunk" if name == "training" else name
            parts[name] = parts.get(name, 0.0) + min(end, ended) - start
    return parts


def warm() -> dict[str, float]:
    """Seconds from pressing Start in the dashboard to the first loss, in total (``all``) and by phase."""
    from accel_engine import run
    from accel_engine.events import PhaseChanged

    with Terminal([sys.executable, "-m", "accel_tui"], 120, 40) as terminal:
        viewer = terminal.viewer()
        viewer.wait_for(lambda text: "in 14 layers" in text)  # the engine has described the default model
        row = next(at for at, line in enumerate(viewer.text.splitlines(), 1) if re.match(r"\s*model\s+auto", line))
        terminal.send(f"\x1b[<0;20;{row}M\x1b[<0;20;{row}m")  # click on the field, which opens its list
        viewer.wait_for(lambda text: "resnet20" in text)
        terminal.send("\x1b[F\x15mlp\r")
        viewer.wait_for(lambda text: "--model mlp" in text and "9,610" in text)
        pressed, at = terminal.send("\x13"), time.time()  # Ctrl-S starts from anywhere
        shown = viewer.wait_for(FIRST_LOSS.search)
    (directory,) = [found.directory for found in run.list_runs()[:1]]
    with closing(run.RunReader(directory)) as reader:
        update = reader.poll()
    phases = [(event.phase.value, event.time) for event in update.events if isinstance(event, PhaseChanged)]
    ended = update.chunks[0].ended
    parts = parts_of(phases, at, ended)
    return parts | {"to the screen": (shown - pressed) - (ended - at), "all": shown - pressed}


def open_dashboard() -> tuple[float, float]:
    """Seconds from the dashboard's start to its first whole frame, and in another to the answer to a waiting key."""
    command = [sys.executable, "-m", "accel_tui"]
    with Terminal(command, 120, 40) as terminal:
        frame = terminal.viewer().wait_for(lambda text: "▶ Start" in text and "Commands" in text) - terminal.started
    with Terminal(command, 120, 40) as terminal:
        terminal.send("/")
        answer = terminal.viewer().wait_for(lambda text: "find a field, e.g." in text) - terminal.started
    return frame, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    os.environ["ACCEL_TUI_HOME"] = tempfile.mkdtemp(prefix="accel-tui-benchmark-")
    ours, cold_starts, scripts, opened = [], [], [], []
    open_dashboard()
    for _ in range(arguments.times):
        opened.append(open_dashboard())
        ours.append(warm())
        cold_starts.append(cold())
        scripts.append(script())
    print(f"Python {platform.python_version()}, {os.cpu_count()} logical CPUs, {time.strftime('%Y-%m-%d')}")
    print(f"load average {os.getloadavg()[0]:.1f}")
    print("| from | to | s: median (least to most) |")
    print("|---|---|---|")
    for name, end, seconds in (
        ("Start, with a warm engine", "the first loss on the screen", [parts["all"] for parts in ours]),
        ("`accel-tui train`, cold", "the first loss", [parts["all"] for parts in cold_starts]),
        ("a plain script that fits", "the first loss", scripts),
        ("the dashboard's process", "the first frame", [frame for frame, _ in opened]),
        ("the dashboard's process", "the answer to a key", [answer for _, answer in opened]),
    ):
        print(f"| {name} | {end} | {statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f}) |")
    for name, times in (("first", ours), ("second", cold_starts)):
        medians = {
            part: statistics.median(parts.get(part, 0.0) for parts in times) for part in times[0] if part != "all"
        }
        print(f"\nOf the {name}, medians:", ", ".join(f"{part} {seconds:.2f} s" for part, seconds in medians.items()))


if __name__ == "__main__":
    main()
