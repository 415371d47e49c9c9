"""Measures the dashboard in a pseudo-terminal: startup time, bytes, CPU time, memory and latency of keys.

    python benchmarks/dashboard.py [--measure bytes paint ...] [--leet .../bin/wandb] [--btop btop]

Prints Markdown tables. All measurements are made from outside the process. They take about ten minutes, and a minute
for each of the other programs.
"""

import argparse
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
from dashboard_following import ACCEL_TUI, LARGE, MB, SMALL, measure_bytes, measure_dialog, measure_rate
from dashboard_keys import DOWN, measure_keys, measure_screens, measure_slow
from dashboard_rivals import measure_rivals
from terminal import Terminal

MEMORY_SECONDS = 10.0
"""Seconds after which memory is measured."""

HELP_OF_FIRST_FIELD = "enter takes the data"
"""The beginning of the form's help on its list of data, to which the first ``down`` moves."""


def measure_paint(arguments: argparse.Namespace) -> Iterator[str]:
    """Goal: 500 ms from the start of ``accel-tui`` to its form, and to the effect of a key pressed at the start."""
    yield "| from the start of | to | starts | median, ms | max, ms |"
    yield "|---|---|---|---|---|"
    bare = [_lifetime([sys.executable, "-c", "pass"]) for _ in range(arguments.starts + 1)][1:]
    yield f"| `python -c pass` | its end | {_spread(bare)} |"
    for columns, rows in (LARGE, SMALL):
        _first_paint(columns, rows)  # warms the file cache
        times = [(_first_paint(columns, rows), _first_key(columns, rows)) for _ in range(arguments.starts)]
        paints, keys = zip(*times, strict=True)
        yield f"| `accel-tui` at {columns}x{rows} | the form on screen | {_spread(paints)} |"
        yield f"| `accel-tui` at {columns}x{rows} | the next field, `down` pressed at the start | {_spread(keys)} |"


def _first_paint(columns: int, rows: int) -> float:
    """Seconds from the start of ``accel-tui`` until the whole form was received."""
    with Terminal([ACCEL_TUI], columns, rows) as terminal:
        return terminal.viewer().wait_for(_form_is_there) - terminal.started


def _first_key(columns: int, rows: int) -> float:
    """Seconds from the start of ``accel-tui`` until the effect of a key that was pressed at once."""
    with Terminal([ACCEL_TUI], columns, rows) as terminal:
        terminal.send(DOWN)
        return terminal.viewer().wait_for(lambda text: HELP_OF_FIRST_FIELD in text) - terminal.started


def _form_is_there(text: str) -> bool:
    """Whether the form is on the screen, from the first field to the key bar."""
    return all(word in text for word in ("1 Data", "digits", "$ accel-tui train", "▶ Start", "Quit"))


def _lifetime(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def _spread(seconds: Sequence[float]) -> str:
    return f"{len(seconds)} | {1000 * statistics.median(seconds):.0f} | {1000 * max(seconds):.0f}"


def measure_memory(arguments: argparse.Namespace) -> Iterator[str]:
    """Goal: 90 MB for the dashboard's process, without the engine."""
    del arguments
    yield "| screen | RSS after 10 s, MB |"
    yield "|---|---|"
    with live_run.steady() as directory:
        for screen, command in {"the form": (ACCEL_TUI,), "a live run": (ACCEL_TUI, "watch", directory)}.items():
            with Terminal(command, *LARGE) as terminal:
                time.sleep(MEMORY_SECONDS)
                terminal.check()
                yield f"| {screen} | {terminal.usage().memory / MB:.0f} |"


MEASURES: dict[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "paint": measure_paint,
    "memory": measure_memory,
    "dialog": measure_dialog,
    "bytes": measure_bytes,
    "rate": measure_rate,
    "keys": measure_keys,
    "screens": measure_screens,
    "slow": measure_slow,
    "rivals": measure_rivals,
}
"""The measurements in order; the first line of each function's docstring is the title of its table."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="+", choices=MEASURES, default=list(MEASURES), help="default: all")
    parser.add_argument("--seconds", type=float, default=45.0, help="seconds of following a run, after the first 15")
    parser.add_argument("--starts", type=int, default=10, help="number of program starts")
    parser.add_argument("--rounds", type=int, default=24, help="rounds of training with and without a dashboard")
    parser.add_argument("--turn", type=float, default=3.0, help="seconds of each side per round")
    parser.add_argument("--keys", type=int, default=100, help="key presses per phase")
    parser.add_argument("--against", type=Path, help="another checkout, with which screens are compared")
    parser.add_argument("--leet", help="path of wandb, in its virtual environment")
    parser.add_argument("--btop", help="path of btop")
    parser.add_argument("--nvitop", help="path of nvitop")
    arguments = parser.parse_args()
    sys.setswitchinterval(0.0005)  # the thread that times reads must not wait for the emulator's
    load = os.getloadavg()[0]
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} logical CPUs with a load of {load:.1f} before", end=", "
    )
    print(time.strftime("%Y-%m-%d"))
    with tempfile.TemporaryDirectory(prefix="accel-tui-benchmark-") as home:
        os.environ["ACCEL_TUI_HOME"] = home
        for name in (name for name in MEASURES if name in arguments.measure):
            measure = MEASURES[name]
            print(f"\n### {name}\n\n{(measure.__doc__ or '').splitlines()[0]}\n")
            for line in measure(arguments):
                print(line, flush=True)


if __name__ == "__main__":
    main()
