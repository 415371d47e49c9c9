"""What the dashboard costs, in a real pseudo-terminal: bytes, processor time, memory, and time to be there.

    python benchmarks/dashboard.py [--measure bytes paint ...] [--leet .../bin/wandb] [--btop btop]

Prints Markdown tables. Everything is seen from outside, as a terminal sees it: bytes as they come, processor time and
memory as the system counts them. All of it takes about ten minutes, and a minute for each of the others.
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

import live_run
from dashboard_following import ACCEL_TUI, LARGE, MB, SMALL, measure_bytes, measure_rate
from dashboard_keys import measure_keys, measure_slow
from dashboard_rivals import measure_rivals
from terminal import Terminal

MEMORY_SECONDS = 10.0
"""After this long a program has its memory."""


def measure_paint(arguments: argparse.Namespace) -> Iterator[str]:
    """Goal: 400 ms from the start of ``accel-tui`` to its first full screen, with a warm cache."""
    yield "| from the start of | to | starts | median, ms | max, ms |"
    yield "|---|---|---|---|---|"
    bare = [_lifetime([sys.executable, "-c", "pass"]) for _ in range(arguments.starts + 1)][1:]
    yield f"| `python -c pass` | its end | {_spread(bare)} |"
    for columns, rows in (LARGE, SMALL):
        paints = [_first_paint(columns, rows) for _ in range(arguments.starts + 1)][1:]  # the first warms the cache
        yield f"| `accel-tui` at {columns}x{rows} | the form on screen | {_spread(paints)} |"


def _first_paint(columns: int, rows: int) -> float:
    """Seconds from the start of ``accel-tui`` until the bytes of the whole form had come."""
    with Terminal([ACCEL_TUI], columns, rows) as terminal:
        return terminal.viewer().wait_for(_form_is_there) - terminal.started


def _form_is_there(text: str) -> bool:
    """From the first field to the keys at the bottom."""
    return all(word in text for word in ("model", "batch size", "$ accel-tui train", "▶ Start", "Quit"))


def _lifetime(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def _spread(seconds: Sequence[float]) -> str:
    return f"{len(seconds)} | {1000 * statistics.median(seconds):.0f} | {1000 * max(seconds):.0f}"


def measure_memory(arguments: argparse.Namespace) -> Iterator[str]:
    """Goal: 90 MB. Of the dashboard's own process; the engine has its own."""
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
    "bytes": measure_bytes,
    "rate": measure_rate,
    "keys": measure_keys,
    "slow": measure_slow,
    "rivals": measure_rivals,
}
"""What can be measured, in the order in which it is; the first line of each function's text is its table's heading."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="+", choices=MEASURES, default=list(MEASURES), help="all when left out")
    parser.add_argument("--seconds", type=float, default=45.0, help="of following, after its first 15")
    parser.add_argument("--starts", type=int, default=10, help="of the program, for its first paint")
    parser.add_argument("--rounds", type=int, default=24, help="of training with a dashboard and without")
    parser.add_argument("--turn", type=float, default=3.0, help="seconds of each side in a round")
    parser.add_argument("--keys", type=int, default=100, help="in every phase that is long enough")
    parser.add_argument("--leet", help="the program wandb, of an environment that it is installed in")
    parser.add_argument("--btop", help="the program btop")
    parser.add_argument("--nvitop", help="the program nvitop")
    arguments = parser.parse_args()
    sys.setswitchinterval(0.0005)  # what comes is timed in a thread, and must not wait for the emulator in another
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
