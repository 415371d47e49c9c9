"""What the dashboard costs, in a real pseudo-terminal: bytes, processor time, memory, and time to be there.

    python benchmarks/dashboard.py [--measure bytes ...] [--seconds 60] [--starts 10]

Prints Markdown tables. Everything is seen from outside, as a terminal sees it: bytes as they come, processor time and
memory as the system counts them.
"""

import argparse
import contextlib
import itertools
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import live_run
from terminal import Terminal, Usage

SIZES = ((200, 50), (80, 24))

FIRST_SCREEN_SECONDS = 3.0
"""From the start of a program until its first screen is out of the way; what it costs is measured by itself."""

BEGINNING_SECONDS = 15.0
"""Measured apart, because the scales of charts change most while a run is young."""

MEMORY_SECONDS = 10.0
"""After this long a program has its memory."""

ACCEL_TUI = Path(sys.executable).with_name("accel-tui")

KIB, MB = 1024, 1e6


def measure_bytes(arguments: argparse.Namespace) -> Iterator[str]:
    """What it costs to follow a live run at 10 updates a second, in both sizes at the same time."""
    yield "| run | size | time | KiB/s | frames/s | CPU, % of a core | RSS, MB |"
    yield "|---|---|---|---|---|---|---|"
    runs = {
        "steady, 1,000 steps/s": live_run.steady(),
        "`mlp`, trained": live_run.trained("mlp", "synthetic:28x28x1:10:60000"),
    }
    for name, made in runs.items():
        with made as directory:
            command = (ACCEL_TUI, "watch", directory)
            for size, usages in zip(SIZES, follow([command] * len(SIZES), SIZES, arguments.seconds), strict=True):
                yield from describe(name, size, usages)


def follow(
    commands: Sequence[Sequence[str | Path]], sizes: Sequence[tuple[int, int]], seconds: float
) -> list[list[Usage]]:
    """Let programs show what they show, each in a terminal of its size.

    Returns:
        Of each, what it had used after the first screen, after the beginning, and at the end.
    """
    with contextlib.ExitStack() as stack:
        terminals = [
            stack.enter_context(Terminal(*each)) for each in zip(commands, *zip(*sizes, strict=True), strict=True)
        ]
        usages: list[list[Usage]] = [[] for _ in terminals]
        for wait in (FIRST_SCREEN_SECONDS, BEGINNING_SECONDS, seconds):
            time.sleep(wait)
            for taken, terminal in zip(usages, terminals, strict=True):
                terminal.check()
                taken.append(terminal.usage(family=True))
    return usages


def describe(name: str, size: tuple[int, int], usages: Sequence[Usage]) -> Iterator[str]:
    """Rows of a table: the beginning, and the rest."""
    for before, after in itertools.pairwise(usages):
        seconds = after.time - before.time
        when = f"first {seconds:.0f} s" if before is usages[0] else f"next {seconds:.0f} s"
        cells = (
            name,
            f"{size[0]}x{size[1]}",
            when,
            f"{(after.sent - before.sent) / KIB / seconds:.1f}",
            f"{(after.frames - before.frames) / seconds:.1f}",
            f"{100 * (after.cpu - before.cpu) / seconds:.1f}",
            f"{after.memory / MB:.0f}",
        )
        yield f"| {' | '.join(cells)} |"


def measure_paint(arguments: argparse.Namespace) -> Iterator[str]:
    """From the start of ``accel-tui`` to its first full screen, and the memory that it has then and later."""
    yield "| from the start of | to | median, ms | max, ms | RSS after 10 s, MB |"
    yield "|---|---|---|---|---|"
    bare = [_seconds_of([sys.executable, "-c", "pass"]) for _ in range(arguments.starts + 1)][1:]
    yield f"| `python -c pass` | its end | {_spread(bare)} | |"
    for columns, rows in SIZES:
        paints = [first_paint(columns, rows)[0] for _ in range(arguments.starts + 1)][1:]  # the first warms the cache
        _, memory = first_paint(columns, rows, stay=MEMORY_SECONDS)
        yield f"| `accel-tui` at {columns}x{rows} | the form on screen | {_spread(paints)} | {memory / MB:.0f} |"


def first_paint(columns: int, rows: int, stay: float = 0.0) -> tuple[float, int]:
    """Start ``accel-tui``.

    Args:
        columns: Width of the terminal.
        rows: Its height.
        stay: Seconds to look on for.

    Returns:
        Seconds from the start of the process until the bytes of the form, from its first field to the keys at the
        bottom, had come; and the bytes of memory that the process has in the end, without the engine's.
    """
    with Terminal([ACCEL_TUI], columns, rows) as terminal:
        seconds = terminal.viewer().wait_for(form_is_there) - terminal.started
        time.sleep(stay)
        return seconds, terminal.usage().memory


def form_is_there(text: str) -> bool:
    """Whether a screen shows the whole form."""
    return all(word in text for word in ("model", "batch size", "$ accel-tui train", "▶ Start", "Quit"))


def _seconds_of(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def _spread(seconds: Sequence[float]) -> str:
    return f"{1000 * statistics.median(seconds):.0f} | {1000 * max(seconds):.0f}"


MEASURES: dict[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "bytes": measure_bytes,
    "paint": measure_paint,
}
"""What can be measured, in the order in which it is."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="+", choices=MEASURES, default=list(MEASURES), help="all when left out")
    parser.add_argument("--seconds", type=float, default=60.0, help="of following, after its beginning")
    parser.add_argument("--starts", type=int, default=10, help="of the program, for the first paint")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} logical CPUs with a load of {load:.1f} before,", end=" "
    )
    print(time.strftime("%Y-%m-%d"))
    with tempfile.TemporaryDirectory(prefix="accel-tui-benchmark-") as home:
        os.environ["ACCEL_TUI_HOME"] = home
        for name in arguments.measure:
            print(f"\n### {name}\n")
            for line in MEASURES[name](arguments):
                print(line, flush=True)


if __name__ == "__main__":
    main()
