"""Times the engine's compiled chunk of steps, and prints a JSON object for each kind of loop.

    python benchmarks/gpu/chunk_bench.py WORK [KIND ...]

A kind is ``loop`` (as many steps as a tensor says), ``blocks`` (the program of GPUs) or ``static:N`` (N steps). Each
object has the milliseconds of chunks by their steps, the slope (microseconds per step), the intercept (milliseconds per
chunk), and the steps per second of chunks in a row: serial, and with the next one submitted by a thread while the last
one is read.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from variants import ON_GPU, PLAN, of_work, patched

from works import WORKS

CHUNK = "accel_engine.training.core.compiled_chunk"

COUNTS = (8, 16, 32, 64, 128, 256, 512)
"""Steps of the chunks that are timed."""

BLOCK = 32
"""The least of them with blocks: shorter chunks have none."""

RECORDING_SECONDS = 1e-3
"""What the engine does between two chunks takes about this long."""


def changes_of(kind: str) -> dict[str, Any]:
    """What is patched for a kind of loop."""
    if kind == "blocks":
        return {ON_GPU: True, f"{CHUNK}:SHORT_STEPS": 0}
    unblocked = {f"{CHUNK}:SHORT_STEPS": 1 << 30}
    return {**unblocked, f"{CHUNK}:tf.while_loop": constant(static_steps(kind))} if static_steps(kind) else unblocked


def static_steps(kind: str) -> int:
    """The steps of a loop of a known length; 0 for others."""
    return int(kind.removeprefix("static:")) if kind.startswith("static:") else 0


def constant(steps: int) -> Callable[..., Any]:
    """A ``tf.while_loop`` that takes some steps, whatever its condition says."""
    import tensorflow as tf

    own = tf.while_loop

    def loop(condition: Callable[..., Any], body: Callable[..., Any], state: Any, **options: Any) -> Any:
        del condition
        return own(lambda index, *_: index < steps, body, state, **options)

    return loop


def measure(name: str, kind: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The times of one kind of loop."""
    import numpy as np
    import tensorflow as tf

    from accel_engine.plan import Plan
    from accel_engine.training.plan_stepper import PlanStepper

    steps = static_steps(kind)
    with patched(changes_of(kind)):
        stepper = PlanStepper(Plan(**{**PLAN, **of_work(name)}), Path(tempfile.mkdtemp(prefix="accel-tui-benchmark-")))
    with closing(stepper):
        assembly, loop = stepper.assembly, stepper._loop  # noqa: SLF001 (no other name leads to it)
        batch, examples = assembly.step_counts.per_replica_batch, len(assembly.dataset.train)
        largest = min(each.size for each in loop._traced.values())  # noqa: SLF001
        least = BLOCK if kind == "blocks" else 8
        counts = [steps] if steps else [each for each in COUNTS if least <= each <= min(arguments.longest, largest)]
        rows = np.random.default_rng(0).integers(0, examples, (counts[-1], 1, batch)).astype(np.int32)
        source = assembly.feed.open(rows)
        with patched(changes_of(kind)):
            traced = loop._chunk_for(source, batch)  # noqa: SLF001

        def chunk(count: int) -> Any:
            return traced.function(source, tf.constant(0), tf.constant(count)).numpy()

        taken = {count: times_of(lambda count=count: chunk(count), arguments.repeats) for count in counts}
        serial, pipelined = (rate(chunk, counts[-1], arguments.chunks) for rate in (serial_rate, pipelined_rate))
    slope, fixed = (
        np.polyfit(counts, list(taken.values()), 1) if len(counts) > 1 else (taken[counts[0]] / counts[0], 0.0)
    )
    return {
        "milliseconds": taken,
        "microseconds_per_step": 1e3 * slope,
        "milliseconds_fixed": fixed,
        "serial": serial,
        "pipelined": pipelined,
        "text": f"{kind}: {1e3 * slope:.1f} µs per step and {fixed:.2f} ms per chunk; {serial:.0f} steps/s serial, "
        f"{pipelined:.0f} pipelined",
    }


def times_of(run: Callable[[], Any], repeats: int) -> float:
    """The median milliseconds, after a first time that does not count."""
    run()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began)
    return 1e3 * statistics.median(taken)


def record() -> None:
    """Take as long as recording, without sleeping."""
    until = time.perf_counter() + RECORDING_SECONDS
    while time.perf_counter() < until:
        pass


def serial_rate(chunk: Callable[[int], Any], count: int, chunks: int) -> float:
    """Steps per second of chunks one after the other."""
    began = time.perf_counter()
    for _ in range(chunks):
        chunk(count)
        record()
    return count * chunks / (time.perf_counter() - began)


def pipelined_rate(chunk: Callable[[int], Any], count: int, chunks: int) -> float:
    """Steps per second where each chunk is submitted before the last one is recorded."""
    with ThreadPoolExecutor(1) as pool:
        began, pending = time.perf_counter(), pool.submit(chunk, count)
        for _ in range(chunks):
            done, pending = pending, pool.submit(chunk, count)
            done.result()
            record()
        pending.result()
        return count * (chunks + 1) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("kinds", nargs="*", default=["loop"], metavar="KIND")
    parser.add_argument("--longest", type=int, default=512, help="steps of a chunk at most")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--chunks", type=int, default=20, help="chunks in a row")
    arguments = parser.parse_args()
    os.environ.setdefault("ACCEL_TUI_HOME", tempfile.mkdtemp(prefix="accel-tui-benchmark-"))
    from accel_engine.engine_main import tensorflow_import

    tensorflow_import.prepare()
    for kind in arguments.kinds:
        print(
            json.dumps({"work": arguments.work, "kind": kind, **measure(arguments.work, kind, arguments)}), flush=True
        )


if __name__ == "__main__":
    main()
