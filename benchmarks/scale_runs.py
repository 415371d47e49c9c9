"""Writes a long run with the engine's writer, as fast as possible.

python benchmarks/scale_runs.py STEPS CHUNK      writes one to ACCEL_TUI_HOME and prints measurements as JSON
"""

import json
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np
import psutil

from accel_engine import run
from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import EpochEnded, Outcome, RunEnded, Validated
from accel_engine.plan import Plan
from accel_engine.run import RunWriter
from live_run import begin

STEPS_PER_SECOND = 1000
"""The recorded rate of the run: a chunk of 50 steps every 50 ms, and a sample per second."""

STEPS_PER_EPOCH = 10_000
BATCH = 64


@dataclass(frozen=True)
class Written:
    """Measurements of writing a run.

    Attributes:
        run: The run's id.
        steps: Number of steps.
        seconds: Total duration.
        first: CPU microseconds per chunk in the first tenth of the run.
        last: The same in the last tenth.
        memory_first: RSS of the writing process in bytes after the first tenth.
        memory: The same at the end.
        size: Size of the run's database in bytes.
    """

    run: str
    steps: int
    seconds: float
    first: float
    last: float
    memory_first: int
    memory: int
    size: int


def write(steps: int, chunk: int) -> Written:
    """Write a run of ``steps`` steps, in chunks of ``chunk``."""
    plan = Plan(model="mlp", data="digits", batch_size=BATCH, epochs=max(1, steps // STEPS_PER_EPOCH), name="scale")
    directory = run.create(plan)
    writer = RunWriter(directory)
    begin(writer, plan, STEPS_PER_EPOCH)
    random, process = np.random.default_rng(0), psutil.Process()
    now = began = time.time()
    costs: list[float] = []
    memory_first, tenths, every = 0, 0, chunk * (steps // 10 // chunk)
    spent = 0.0
    for first in range(0, steps, chunk):
        at = np.arange(first, min(first + chunk, steps))
        loss = (0.05 + 2 * np.exp(-6 * at / steps)) * np.exp(random.normal(0, 0.15, len(at)))
        accuracy = random.binomial(BATCH, np.exp(-loss)) / BATCH
        before = time.process_time()
        writer.write_chunk(first, now, now + len(at) / STEPS_PER_SECOND, {"loss": loss, "accuracy": accuracy})
        spent += time.process_time() - before
        now += len(at) / STEPS_PER_SECOND
        done = first + len(at)
        if done % STEPS_PER_SECOND == 0:
            writer.write_samples([Sample(now, "cpu:0", {"utilization": Reading(float(random.uniform(0, 100)), "%")})])
        if done % STEPS_PER_EPOCH == 0:
            epoch, metrics = done // STEPS_PER_EPOCH, {"loss": float(loss.mean()), "accuracy": float(accuracy.mean())}
            writer.write_event(EpochEnded(time=now, epoch=epoch, step=done, metrics=metrics, seconds=10.0))
            writer.write_event(Validated(time=now, epoch=epoch, step=done, metrics=metrics, seconds=0.5))
        if done % every == 0:
            tenths += 1
            costs.append(1e6 * spent * chunk / every)
            spent = 0.0
            memory_first = memory_first or process.memory_info().rss
    seconds = time.time() - began
    writer.end(
        RunEnded(
            time=now,
            outcome=Outcome.FINISHED,
            steps=steps,
            epochs=plan.epochs,
            seconds=now - began,
            steps_per_second=STEPS_PER_SECOND,
            metrics={"loss": float(loss.mean()), "accuracy": float(accuracy.mean())},
        )
    )
    size = sum(path.stat().st_size for path in directory.glob("run.db*"))
    memory = process.memory_info().rss
    return Written(directory.name, steps, seconds, costs[0], costs[-1], memory_first, memory, size)


if __name__ == "__main__":
    print(json.dumps(asdict(write(int(sys.argv[1]), int(sys.argv[2])))))
