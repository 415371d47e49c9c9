"""What measuring inference costs: ``python benchmarks/measuring.py [--seconds 1] [--repeats 5]``.

Sends requests that do nothing, so that only the measuring itself takes time: in a closed loop, as the scenarios
single-stream, multi-stream and offline do, and in an open loop with all requests due, as the scenario server does at
its limit. It prints the microseconds per request of each repeat's windows, the smallest first.
"""

import argparse

import numpy as np

from accel_engine.inference.measurement.rate_search import OpenLoop
from accel_engine.inference.measurement.stability import ClosedLoop

REQUESTS = 200_000


def nothing(request: object) -> None:
    """Answer at once."""


def closed(seconds: float, *, keeps_latencies: bool) -> float:
    loop = ClosedLoop(nothing, [None], 1, keeps_latencies=keeps_latencies)
    window = loop.window(seconds)
    return window.nanoseconds / window.requests / 1000


def opened(largest_batch: int) -> float:
    loop = OpenLoop(nothing, np.arange(REQUESTS, dtype=np.int64), largest_batch)
    window = loop.window(3600)
    return window.nanoseconds / window.requests / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a window of the closed loop")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    cases = {
        "multi-stream": lambda: closed(arguments.seconds, keeps_latencies=True),
        "offline": lambda: closed(arguments.seconds, keeps_latencies=False),
        "server, one by one": lambda: opened(1),
        "server, batches of 8": lambda: opened(8),
    }
    for name, measure in cases.items():
        times = sorted(measure() for _ in range(arguments.repeats))
        print(f"{name:22}", *(f"{each:.3f}" for each in times), "microseconds per request")


if __name__ == "__main__":
    main()
