"""Measures steps per second of accel-tui's engine compared with ``model.fit`` and, if asked, with JAX.

    python benchmarks/training.py [--work mlp-32 ...] [--rounds 5] [--seconds 3] [--jax PYTHON-WITH-JAX]

Every side is a separate process that keeps running. They are measured in turn, for some seconds each, so that a drift
of the machine's speed affects all equally. Ours is the real engine writing its run, with all per-step series and a
dashboard following it in a pseudo-terminal of 200x50; it is paused and resumed by commands.

The Python with JAX needs `jax` and `keras`, but neither TensorFlow nor accel-tui.
"""

import argparse
import contextlib
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from our_side import Ours
from served_side import ServedSide
from works import WORKS

SIDES = {
    "fit": "model.fit(verbose=0)",
    "tensorboard": 'fit with TensorBoard(update_freq="batch")',
    "fit-32": "fit with steps_per_execution=32",
}
"""The alternatives, by the name of the side."""

JAX_SIDES = {
    "jax": "JAX by hand: many steps in one compiled function",
    "keras-jax": "model.fit(verbose=0) on Keras' JAX backend",
}
"""Those that need a Python with JAX."""

HERE = Path(__file__).parent


def compare(name: str, arguments: argparse.Namespace) -> str:
    """Measure one work on all sides; returns a row of the report."""
    with contextlib.ExitStack() as stack:
        ours = Ours(WORKS[name], arguments.xla, dashboard=not arguments.no_dashboard, threads=arguments.threads)
        stack.enter_context(contextlib.closing(ours))
        ours.settle()
        others = {}
        for side in sides(arguments):
            if (started := start(side, name, arguments, stack)) is not None:
                others[side] = stack.enter_context(contextlib.closing(started))
                print(f"{name}, {side}: {started.description}", file=sys.stderr)
        for other in others.values():
            other.measure(0.1)
        rates: dict[str, list[float]] = {side: [] for side in ("ours", *others)}
        for _ in range(arguments.rounds):
            rates["ours"].append(ours.measure(arguments.seconds))
            for side, other in others.items():
                rates[side].append(other.measure(arguments.seconds))
    cells = [f"{statistics.median(rates['ours']):.1f}"]
    cells += [cell(rates["ours"], rates.get(side, ())) for side in sides(arguments)]
    return f"| `{name}` | " + " | ".join(cells) + " |"


def sides(arguments: argparse.Namespace) -> list[str]:
    """The names of the sides to compare with."""
    return [*SIDES, *(JAX_SIDES if arguments.jax else ())]


def start(side: str, name: str, arguments: argparse.Namespace, stack: contextlib.ExitStack) -> ServedSide | None:
    """Start a side for a work; ``None`` if it cannot do the work."""
    if side not in JAX_SIDES:
        variables = {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
        onednn = {"TF_ENABLE_ONEDNN_OPTS": "1"} if arguments.onednn else {}
        return ServedSide([sys.executable, HERE / "fit_side.py", side, name], variables | onednn)
    if WORKS[name].is_stream:
        return None
    file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "examples.npz"
    write = [sys.executable, HERE / "training_examples.py", name, file]
    subprocess.run(write, check=True, stderr=subprocess.DEVNULL)
    words = ["jax_side.py"] if side == "jax" else ["fit_side.py", side]
    return ServedSide([arguments.jax, HERE / words[0], *words[1:], name, file], {"KERAS_BACKEND": "jax"})


def cell(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The median rate of a side and the ratios of ours to it, as two cells of the report."""
    if not theirs:
        return "not measured |"
    ratios = [mine / its for mine, its in zip(ours, theirs, strict=True)]
    spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
    return f"{statistics.median(theirs):.1f} | {statistics.median(ratios):.2f} ({spread})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="append", choices=WORKS, help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds per turn")
    parser.add_argument("--xla", default="auto", choices=("auto", "on", "off"))
    parser.add_argument("--no-dashboard", action="store_true")
    parser.add_argument("--threads", type=int, help="threads per operation of our engine; default: the number of CPUs")
    parser.add_argument(
        "--onednn",
        action="store_true",
        help="enable the kernels that our engine uses for fit, too (TF_ENABLE_ONEDNN_OPTS=1)",
    )
    parser.add_argument("--jax", type=Path, metavar="PYTHON", help="a Python with jax and keras; default: without JAX")
    arguments = parser.parse_args()
    if arguments.jax and not arguments.jax.is_file():
        parser.error(f"--jax: there is no {arguments.jax}; give the path of a Python with jax and keras")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # after ending the sides
    os.environ.setdefault("ACCEL_TUI_HOME", tempfile.mkdtemp(prefix="accel-tui-benchmark-"))
    print(f"Python {platform.python_version()}, {os.cpu_count()} logical CPUs, {time.strftime('%Y-%m-%d')}")
    chosen = sides(arguments)
    print("| work | ours, steps/s | " + " | ".join(f"{side} | ours over it" for side in chosen) + " |")
    print("|---" * (2 + 2 * len(chosen)) + "|")
    for name in arguments.work or WORKS:
        print(compare(name, arguments), flush=True)


if __name__ == "__main__":
    main()
