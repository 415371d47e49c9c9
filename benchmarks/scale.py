"""Measures writing, opening, zooming and scrolling runs of different lengths.

    python benchmarks/scale.py [--steps 10000 1000000 10000000] [--chunk 50] [--leet .../bin/wandb]

Prints Markdown tables. Runs are written by the engine's writer in a separate process, and opened in the dashboard in a
pseudo-terminal of 200x50. W&B LEET opens offline runs written by wandb. Takes about four minutes without LEET.
"""

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from scale_runs import Written
from terminal import Terminal, Viewer

ACCEL_TUI = Path(sys.executable).with_name("accel-tui")
RUNS = Path(__file__).with_name("scale_runs.py")
SIZE = (200, 50)
MB = 1e6

QUIET_SECONDS = 0.2
"""Seconds without a change after which the screen counts as complete."""

KEYS = {"zoom in": "+", "earlier": "\x1b[D", "later": "\x1b[C", "zoom out": "-"}
PRESSES = 12

WANDB_WRITER = """
import math, random, sys, wandb
steps = int(sys.argv[2])
run = wandb.init(mode="offline", dir=sys.argv[1], project="scale", settings=wandb.Settings(silent=True))
for step in range(steps):
    loss = (0.05 + 2 * math.exp(-6 * step / steps)) * random.lognormvariate(0, 0.15)
    run.log({"loss": loss, "accuracy": math.exp(-loss)})
print(run.dir, flush=True)
run.finish()
"""


def write(home: Path, steps: int, chunk: int) -> Written:
    """Write a run in a separate home directory."""
    command = [sys.executable, str(RUNS), str(steps), str(chunk)]
    environment = os.environ | {"ACCEL_TUI_HOME": str(home)}
    return Written(**json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout))


def writing(runs: Sequence[Written], chunk: int) -> Iterator[str]:
    """Goal: the cost per chunk does not depend on the run's length; compares the first and last tenth of each run."""
    yield "| steps | chunks | steps/s | CPU/chunk, first, µs | last, µs | RSS, first, MB | last, MB | file, B/step |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in runs:
        yield (
            f"| {one.steps:,} | {one.steps // chunk:,} | {one.steps / one.seconds:,.0f} | {one.first:.0f} "
            f"| {one.last:.0f} | {one.memory_first / MB:.0f} | {one.memory / MB:.0f} | {one.size / one.steps:.1f} |"
        )


def opening(homes: Sequence[tuple[Path, Written]], times: int) -> Iterator[str]:
    """Goal: half a second from the key that opens the run to its whole curve, and the same memory for all runs."""
    yield "| steps | opened | to the whole curve, median, ms | max, ms | CPU for it, s | RSS of the dashboard, MB |"
    yield "|---|---|---|---|---|---|"
    for home, one in homes:
        seconds, cpu, memory = zip(*(_open(home, one) for _ in range(times)), strict=True)
        yield (
            f"| {one.steps:,} | {times} | {1000 * statistics.median(seconds):.0f} | {1000 * max(seconds):.0f} | "
            f"{statistics.median(cpu):.2f} | {statistics.median(memory) / MB:.0f} |"
        )


def _open(home: Path, one: Written) -> tuple[float, float, int]:
    """Seconds from ``enter`` in the list of runs to the whole curve, CPU seconds in that time, and RSS in bytes."""
    with Terminal([ACCEL_TUI], *SIZE, {"ACCEL_TUI_HOME": str(home)}) as terminal:
        viewer = terminal.viewer()
        viewer.wait_for(lambda text: "Start" in text)
        time.sleep(3)  # an engine starts importing TensorFlow, which is not measured
        terminal.send("r")
        viewer.wait_for(lambda text: "created" in text and one.run in text)
        settle(viewer)
        while True:
            before = terminal.usage()
            pressed = terminal.send("\r")
            # A list that has just appeared may miss a key.
            with contextlib.suppress(TimeoutError):
                there = viewer.wait_for(lambda text: is_whole(text, one.steps), 10)
                break
        after = terminal.usage()
        time.sleep(1)
        return there - pressed, after.cpu - before.cpu, terminal.usage().memory


def is_whole(text: str, steps: int) -> bool:
    """Whether the whole curve is on the screen, up to the label of the last step."""
    label = f"{steps // 1_000_000}M" if steps >= 1_000_000 else f"{steps // 1000}k"
    drawn = {column for line in text.splitlines() for column, cell in enumerate(line) if "\u2801" <= cell <= "\u28ff"}
    return f"step {steps:,}" in text and f" {label} " in text and len(drawn) > SIZE[0] // 2


def settle(viewer: Viewer) -> float:
    """Wait until the screen no longer changes; returns the time of the last change."""
    last = time.perf_counter()
    with contextlib.suppress(TimeoutError):
        while True:
            before = viewer.text
            last = viewer.wait_for(lambda text, before=before: text != before, QUIET_SECONDS)
    return last


def moving(homes: Sequence[tuple[Path, Written]]) -> Iterator[str]:
    """Goal: 50 ms from a key to the frame that responds to it."""
    yield "| steps | key | pressed | first frame, median, ms | max, ms | exact, median, ms | max, ms | CPU/key, ms |"
    yield "|---|---|---|---|---|---|---|---|"
    for home, one in homes:
        command = [ACCEL_TUI, "watch", home / "runs" / one.run]
        with Terminal(command, *SIZE) as terminal:
            viewer = terminal.viewer()
            viewer.wait_for(lambda text, one=one: is_whole(text, one.steps))
            time.sleep(2)
            settle(viewer)
            presses = min(PRESSES, (one.steps // 400).bit_length())
            for name, key in KEYS.items():
                yield f"| {one.steps:,} | {name} | {presses} | {_press(terminal, viewer, key, presses)} |"


def _press(terminal: Terminal, viewer: Viewer, key: str, times: int) -> str:
    frames, exact, cpu = [], [], []
    for _ in range(times):
        before, used = axis(viewer.text), terminal.usage().cpu
        pressed = terminal.send(key)
        frames.append(1000 * (viewer.wait_for(lambda text, before=before: axis(text) != before, 10) - pressed))
        with contextlib.suppress(TimeoutError):
            exact.append(frames[-1])
            while True:
                text = viewer.text
                exact[-1] = 1000 * (viewer.wait_for(lambda now, text=text: now != text, QUIET_SECONDS) - pressed)
        cpu.append(1000 * (terminal.usage().cpu - used))
    return (
        f"{statistics.median(frames):.0f} | {max(frames):.0f} | {statistics.median(exact):.0f} | {max(exact):.0f} | "
        f"{statistics.median(cpu):.0f}"
    )


def axis(text: str) -> str:
    """The labels of the first chart's step axis."""
    lines = text.splitlines()
    return next((lines[row + 1] for row, line in enumerate(lines[:-1]) if "└" in line), "")


def rivals(wandb: Path, steps: Sequence[int]) -> Iterator[str]:
    """Time from the start of a program until it shows the whole run, with CPU time and memory of all its processes."""
    yield "| steps | program | from its start to the whole run, s | CPU, s | RSS, MB |"
    yield "|---|---|---|---|---|"
    for count in steps:
        with tempfile.TemporaryDirectory(prefix="accel-tui-benchmark-") as directory:
            yield _leet(wandb, Path(directory), count)
            home = Path(directory) / "home"
            run = write(home, count, 50).run
            with Terminal([ACCEL_TUI, "watch", home / "runs" / run], *SIZE) as terminal:
                yield _seen(terminal, count, "accel-tui", lambda text, count=count: is_whole(text, count))


def _leet(wandb: Path, directory: Path, steps: int) -> str:
    python = wandb.absolute().with_name("python")
    command = [python, "-c", WANDB_WRITER, directory, str(steps)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    files = Path(output.strip().splitlines()[-1])
    with Terminal([wandb, "leet", "run", files.parent], *SIZE) as terminal:
        # The run's state is the last record of its file.
        return _seen(terminal, steps, "W&B LEET", lambda text: "State: Finished" in text)


def _seen(terminal: Terminal, steps: int, name: str, there: Callable[[str], object]) -> str:
    viewer = terminal.viewer()
    seconds = viewer.wait_for(there, 600) - terminal.started
    usage = terminal.usage(family=True)
    return f"| {steps:,} | {name} | {seconds:.2f} | {usage.cpu:.2f} | {usage.memory / MB:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", nargs="+", type=int, default=[10**4, 10**6, 10**7])
    parser.add_argument("--chunk", type=int, default=50, help="steps per chunk")
    parser.add_argument("--times", type=int, default=5, help="number of times each run is opened")
    parser.add_argument("--leet", type=Path, metavar="PATH", help="path of wandb, for LEET")
    parser.add_argument("--leet-steps", nargs="+", type=int, default=[10**4, 10**5])
    arguments = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, {platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="accel-tui-benchmark-") as directory:
        homes = []
        for steps in arguments.steps:
            home = Path(directory) / str(steps)
            homes.append((home, write(home, steps, arguments.chunk)))
        tables = [
            writing([one for _, one in homes], arguments.chunk),
            opening(homes, arguments.times),
            moving(homes),
        ]
        if arguments.leet:
            tables.append(rivals(arguments.leet, arguments.leet_steps))
        for table in tables:
            print()
            for line in table:
                print(line, flush=True)


if __name__ == "__main__":
    main()
