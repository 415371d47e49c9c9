"""Measures how near our engine's training is to what the machine can do.

    python benchmarks/limits.py [--work mlp-32 ...] [--rounds 5] [--seconds 2]

For each work: steps per second, the share of the time in which chunks of steps run, and the share of the peak FLOP/s
that the engine measures with matrix products. Only matrix products and convolutions count as
FLOPs.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
from pathlib import Path

from our_side import Ours
from works import WORKS


def measure(name: str, arguments: argparse.Namespace) -> str:
    """A row of the report."""
    from accel_engine import run
    from accel_engine.events import WorkCounted

    with contextlib.closing(Ours(WORKS[name], "auto", dashboard=True, threads=arguments.threads)) as ours:
        ours.settle()
        rates, busy = [], []
        for _ in range(arguments.rounds):
            chunks = ours.train(arguments.seconds)
            passed = chunks[-1].ended - chunks[0].ended
            rates.append(sum(chunk.count for chunk in chunks[1:]) / passed)
            busy.append(sum(chunk.ended - chunk.started for chunk in chunks[1:]) / passed)
        with contextlib.closing(run.RunReader(Path(ours.directory))) as reader:
            counted = [event for event in reader.poll().events if isinstance(event, WorkCounted)]
    rate, share, last = statistics.median(rates), statistics.median(busy), counted[-1]
    reached = "unknown" if not last.flops or not last.peak else f"{last.flops * rate / last.peak:.1%}"
    return f"| `{name}` | {rate:.1f} | {share:.1%} | {reached} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="append", choices=WORKS, help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds per round")
    parser.add_argument("--threads", type=int, help="threads per operation of the engine")
    arguments = parser.parse_args()
    os.environ.setdefault("ACCEL_TUI_HOME", tempfile.mkdtemp(prefix="accel-tui-benchmark-"))
    print("| work | steps/s | time in chunks | of the measured peak |")
    print("|---|---|---|---|")
    for name in arguments.work or WORKS:
        print(measure(name, arguments), flush=True)


if __name__ == "__main__":
    main()
