"""Measures the share of training time spent in TensorFlow's kernels, and so what a faster loop could still gain.

    python benchmarks/kernels.py [--work mlp-32 ...] [--seconds 3]

TensorFlow's profiler records every kernel on all threads. The share is the time with at least one running kernel over
the time of the loop; the rest is dispatch, the executor, Python and recording.
"""

import argparse
import collections
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from works import WORKS, Work

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

CALLS = {"While", "StatelessWhile", "If", "StatelessIf", "PartitionedCall", "StatefulPartitionedCall"}
"""Ops that only call others."""

IN_MEMORY = [name for name, work in WORKS.items() if not work.is_stream]


def busy_seconds(spans: Iterable[tuple[int, int]]) -> float:
    """Seconds covered by at least one of the spans, each with start and end in picoseconds."""
    total, until = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total / 1e12


def read_kernels(directory: Path) -> list[tuple[str, int, int]]:
    """The kernels of a profile: the op's type, its start and end in picoseconds."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    (profile,) = directory.rglob("*.xplane.pb")
    space.ParseFromString(profile.read_bytes())
    kernels = []
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                # A kernel's event is called "name of the node:type of the op".
                _, colon, op = plane.event_metadata[event.metadata_id].name.partition(":")
                if colon and op.isidentifier() and op not in CALLS:
                    start = line.timestamp_ns * 1000 + event.offset_ps
                    kernels.append((op, start, start + event.duration_ps))
    return kernels


def profile(name: str, work: Work, seconds: float, xla: bool, micro_batches: int) -> str:
    """Train for some seconds under the profiler; returns a row of the report."""
    import tensorflow as tf

    from accel_engine.plan import Plan
    from accel_engine.training.core.loop import ExecutionMode
    from engine_loop import make_loop, measure_rate

    plan = Plan(model=work.model, data=work.data, batch_size=work.batch, epochs=1, validation="off")
    loop, segment, _ = make_loop(plan, ExecutionMode(xla, micro_batches))
    measure_rate(loop, segment, seconds / 2)  # warm up and adapt the chunk size
    with tempfile.TemporaryDirectory() as directory:
        steps, began = 0, time.perf_counter()
        with tf.profiler.experimental.Profile(directory):
            began = time.perf_counter()
            for measured in loop.run(segment, 0):
                steps += measured.count
                if time.perf_counter() - began > seconds:
                    break
            wall = time.perf_counter() - began
        kernels = read_kernels(Path(directory))
    share = busy_seconds((start, end) for _, start, end in kernels) / wall
    by_type: collections.Counter[str] = collections.Counter()
    for op, start, end in kernels:
        by_type[op] += end - start
    total = sum(by_type.values())
    largest = ", ".join(
        f"{op.removeprefix('_Mkl').removeprefix('Native')} {spent / total:.0%}" for op, spent in by_type.most_common(4)
    )
    return f"| `{name}` | {steps} | {1000 * wall / steps:.2f} | {share:.0%} | {largest} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="append", choices=IN_MEMORY, help="default: all")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--xla", action="store_true", help="compile the step with XLA")
    parser.add_argument(
        "--micro-batches", type=int, default=1, help="micro-batches per batch, in parallel on all cores"
    )
    arguments = parser.parse_args()
    from accel_engine.engine_main import tensorflow_import

    tensorflow_import.prepare()
    print("| work | steps | ms per step | share of time in kernels | the largest, of all kernels' time |")
    print("|---|---|---|---|---|")
    for name in arguments.work or IN_MEMORY:
        print(profile(name, WORKS[name], arguments.seconds, arguments.xla, arguments.micro_batches), flush=True)


if __name__ == "__main__":
    main()
