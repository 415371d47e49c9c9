"""Creates live runs: one trained by a real engine, and one written at a constant rate without training.

python benchmarks/live_run.py DIRECTORY      writes the second one; the benchmarks start this themselves
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine import run
from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import (
    CommandAnswered,
    DevicesFound,
    EpochEnded,
    LearningRateChanged,
    ModelBuilt,
    Phase,
    PhaseChanged,
    RunStarted,
    TensorFlowDevice,
    Validated,
)
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.run import RunReader, RunWriter

UPDATES_PER_SECOND = 10
STEPS_PER_UPDATE = 100
STEPS_PER_EPOCH = 5000
BATCH = 32

START_SECONDS = 180.0
"""Time limit for an engine's first steps."""


@contextlib.contextmanager
def steady() -> Iterator[Path]:
    """Yield the directory of a run with 1,000 steps per second, in 10 updates, and a sample per second.

    An epoch takes 5 s; at its end, commands are answered.
    """
    directory = run.create(Plan(model="mlp", data="digits", batch_size=BATCH, epochs=10**5, name="steady"))
    writer = subprocess.Popen([sys.executable, __file__, str(directory)])
    try:
        _wait_for_steps(directory, writer)
        yield directory
    finally:
        writer.kill()
        writer.wait()


@contextlib.contextmanager
def trained(**fields: Any) -> Iterator[Path]:
    """Yield the directory of a run that a real engine trains without end, once it has steps."""
    directory = run.create(Plan(**fields, epochs=10**5))
    engine = engine_process.start_engine(directory)
    try:
        _wait_for_steps(directory, engine)
        yield directory
    finally:
        engine.kill()
        engine.wait()


def _wait_for_steps(directory: Path, engine: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    with contextlib.closing(RunReader(directory)) as reader:
        while not reader.poll().chunks:
            if engine.poll() is not None or time.monotonic() > deadline:
                raise SystemExit((directory / "log.txt").read_text() or f"no steps in {directory}")
            time.sleep(0.05)


def write(directory: Path) -> None:
    """Write the constant-rate run until this process is killed."""
    random = np.random.default_rng(0)
    writer = RunWriter(directory)
    begin(writer, Plan(model="mlp", data="digits", batch_size=BATCH, epochs=10**5, name="steady"), STEPS_PER_EPOCH)
    step, began = 0, time.time()
    for update in range(10**9):
        due = began + (update + 1) / UPDATES_PER_SECOND
        time.sleep(max(0.0, due - time.time()))
        at = step + np.arange(STEPS_PER_UPDATE)
        # Like training with a batch size of 32: the loss is a power of the step, with noise.
        falling = (1 + at / 500) ** -0.5
        loss = 2.3 * falling * np.exp(random.normal(0, 0.15, STEPS_PER_UPDATE))
        accuracy = random.binomial(BATCH, 1 - 0.9 * falling) / BATCH
        writer.write_chunk(step, due - 1 / UPDATES_PER_SECOND, due, {"loss": loss, "accuracy": accuracy})
        step += STEPS_PER_UPDATE
        if (update + 1) % UPDATES_PER_SECOND == 0:
            writer.heartbeat()
            writer.write_samples([_sample(random)])
        if step % STEPS_PER_EPOCH == 0:
            metrics = {"loss": float(loss.mean()), "accuracy": float(accuracy.mean())}
            epoch = step // STEPS_PER_EPOCH
            writer.write_event(EpochEnded(time=due, epoch=epoch, step=step, metrics=metrics, seconds=5.0))
            writer.write_event(PhaseChanged(time=due, phase=Phase.VALIDATING))
            writer.write_event(Validated(time=due, epoch=epoch, step=step, metrics=metrics, seconds=0.0))
            for command in writer.commands():
                writer.answer(command, obeyed=True, answer=command.name)
                answered = CommandAnswered(
                    time=due, command=command.name, who=command.who, obeyed=True, answer=command.name, step=step
                )
                writer.write_event(answered)
            writer.write_event(PhaseChanged(time=due, phase=Phase.TRAINING))


def begin(writer: RunWriter, plan: Plan, steps_per_epoch: int) -> None:
    """Write the events of an engine that trains ``mlp`` on ``digits``, up to its first step."""
    now = time.time()
    started = RunStarted(
        time=now,
        run=writer.directory.name,
        name=plan.name,
        plan=plan.to_mapping(),
        first_step=0,
        pid=os.getpid(),
        host=socket.gethostname(),
        versions=engine_process.package_versions(),
    )
    writer.begin(started)
    device = TensorFlowDevice("CPU:0", "cpu", device="cpu:0")
    writer.write_event(DevicesFound(time=now, devices=(device,), strategy="OneDeviceStrategy"))
    writer.write_event(
        ModelBuilt(
            time=now,
            parameters=9610,
            trainable=9610,
            layers=4,
            input_shape=(8, 8, 1),
            classes=10,
            examples=steps_per_epoch * plan.batch_size,
            validation_examples=360,
            epochs=plan.epochs,
            steps_per_epoch=steps_per_epoch,
            global_batch=plan.batch_size,
            per_replica_batch=plan.batch_size,
            dropped_examples=0,
            replicas=1,
            optimizer="Adam",
            loss="sparse_categorical_crossentropy",
            series=("loss", "accuracy"),
            precision="float32",
            xla=False,
            feed="resident",
        )
    )
    writer.write_event(LearningRateChanged(time=now, step=0, learning_rate=1e-3))
    writer.write_event(PhaseChanged(time=now, phase=Phase.TRAINING))


def _sample(random: np.random.Generator) -> Sample:
    cores = random.uniform(20, 90, 2)
    readings = {
        "utilization": Reading(float(cores.mean()), "%"),
        "memory_used": Reading(float(random.uniform(3e9, 3.2e9)), "B"),
        "memory_total": Reading(8e9, "B"),
        "load": Reading(float(random.uniform(1, 2))),
        **{f"core_{index}": Reading(float(core), "%") for index, core in enumerate(cores)},
    }
    return Sample(time.time(), "cpu:0", readings)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
