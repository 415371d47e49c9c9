"""An engine without TensorFlow: it says of a run what a real one would, when a test tells it to."""

import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    DevicesFound,
    EpochEnded,
    Event,
    LearningRateChanged,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    TensorFlowDevice,
    Validated,
    Warned,
)
from accel_engine.plan import Plan
from accel_engine.run import Command, RunWriter, create
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.run.store.database import RunDatabase
from example_events import model_built

GIB = 1 << 30


def dead_pid() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


OPEN: "list[FakeEngine]" = []
"""Those of this test: as a process does, they hold their runs until it ends."""


def close_all() -> None:
    """End all engines, as the end of their processes does."""
    while OPEN:
        OPEN.pop().close()


class FakeEngine:
    """Writes a run as this process, so that it counts as running; with ``pid`` as another."""

    def __init__(self, plan: Plan | None = None, *, directory: Path | None = None, pid: int | None = None) -> None:
        self.plan = plan or Plan(epochs=4, batch_size=64)
        self.directory = directory or create(self.plan)
        self.writer = RunWriter(self.directory)
        OPEN.append(self)
        self.pid = pid or os.getpid()
        self.steps_per_epoch = 100
        self.step = 0
        self.rate: float | None = None
        self.now = time.time()
        self._random = np.random.default_rng(0)

    def say(self, kind: type[Event], **values: Any) -> None:
        if kind is LearningRateChanged:
            self.rate = values["learning_rate"]
        self.writer.write_event(kind(**{"time": time.time(), **values}))

    def enter(self, phase: Phase, detail: str = "") -> None:
        self.say(PhaseChanged, phase=phase, detail=detail)

    def begin(self, first_step: int = 0) -> "FakeEngine":
        self.step = first_step
        started = RunStarted(
            time=time.time(),
            run=self.directory.name,
            name=self.plan.name,
            plan=self.plan.to_mapping(),
            first_step=first_step,
            pid=self.pid,
            host=socket.gethostname(),
            versions={},
        )
        self.writer.begin(started)
        self.pretend()
        self.enter(Phase.BUILDING)
        return self

    def pretend(self) -> None:
        """Let the run belong to :attr:`pid`, and be lost if that process has ended."""
        with closing(RunDatabase(self.directory)) as connection:
            connection.set_meta(pid=self.pid)
        if not psutil.pid_exists(self.pid):
            assert self.writer._writer_lock
            self.writer._writer_lock.release()

    def build(self) -> "FakeEngine":
        device = TensorFlowDevice("CPU:0", "cpu", "AMD EPYC 7B13", "cpu:0")
        self.say(DevicesFound, devices=(device,), strategy="OneDeviceStrategy")
        self.writer.write_event(
            model_built(
                time=time.time(),
                parameters=61_706,
                trainable=61_450,
                layers=12,
                examples=1437,
                validation_examples=360,
                epochs=self.plan.epochs,
                steps_per_epoch=self.steps_per_epoch,
                global_batch=self.plan.batch_size,
                per_replica_batch=self.plan.batch_size,
                dropped_examples=29,
                series=("loss", "accuracy"),
            )
        )
        self.say(LearningRateChanged, step=self.step, learning_rate=1e-3)
        self.enter(Phase.TRAINING)
        return self

    def train(self, steps: int, *, seconds: float = 0.05, chunk: int = 10) -> "FakeEngine":
        """Take steps whose loss falls; each chunk seems to take ``seconds``."""
        for first in range(0, steps, chunk):
            count = min(chunk, steps - first)
            at = np.arange(self.step, self.step + count)
            noise = self._random.normal(0, 1, count)
            loss = 0.08 + 2.2 * np.exp(-at / 90) * np.exp(0.12 * noise) + 0.02 * np.abs(noise)
            self.chunk(loss, 1 - 0.38 * loss, seconds=seconds)
        return self

    def chunk(
        self, loss: npt.ArrayLike, accuracy: npt.ArrayLike | None = None, *, seconds: float = 0.05, at: float = math.nan
    ) -> None:
        values = np.atleast_1d(np.asarray(loss, np.float32))
        self.now = max(self.now, time.time()) if math.isnan(at) else at
        series = {"loss": values, "accuracy": np.full(len(values), 0.5) if accuracy is None else accuracy}
        if self.rate is not None:
            series["learning_rate"] = np.full(len(values), self.rate)
        self.writer.write_chunk(self.step, self.now, self.now + seconds, series)
        self.now += seconds
        self.step += len(values)

    def end_epoch(self, loss: float = 0.31, accuracy: float = 0.9) -> None:
        epoch = self.step // self.steps_per_epoch
        self.say(
            EpochEnded, epoch=epoch, step=self.step, metrics={"loss": loss * 0.8, "accuracy": accuracy}, seconds=1.0
        )
        self.enter(Phase.VALIDATING)
        metrics = {"loss": loss, "accuracy": accuracy - 0.02}
        self.say(Validated, epoch=epoch, step=self.step, metrics=metrics, seconds=0.2)
        self.save()
        self.enter(Phase.TRAINING)

    def save(self) -> None:
        epoch = self.step // self.steps_per_epoch
        self.say(CheckpointSaved, epoch=epoch, step=self.step, path=f"checkpoints/step-{self.step}", seconds=0.1)
        (self.directory / CHECKPOINTS).mkdir(exist_ok=True)
        (self.directory / CHECKPOINTS / f"step-{self.step}.index").touch()

    def warn(self, message: str) -> None:
        self.say(Warned, message=message)

    def sample(self, utilization: float | None = 40.0, devices: Sequence[str] = ("cpu:0",)) -> None:
        reading = Reading(utilization, "%") if utilization is not None else Reading.missing("not supported", "%")
        readings = {
            "utilization": reading,
            "memory_used": Reading(7.3 * GIB, "B"),
            "memory_total": Reading(16 * GIB, "B"),
            "load": Reading(1.4),
        }
        self.writer.write_samples([Sample(time.time(), device, readings) for device in devices])

    def end(self, outcome: Outcome = Outcome.FINISHED, reason: str = "", hint: str = "") -> None:
        self.say(
            RunEnded,
            outcome=outcome,
            steps=self.step,
            epochs=self.step // self.steps_per_epoch,
            seconds=83.0,
            steps_per_second=812.0,
            metrics={"loss": 0.0313, "accuracy": 0.9911, "validation_loss": 0.052, "validation_accuracy": 0.9861},
            reason=reason,
            hint=hint,
        )

    def answer_commands(self, *, obeyed: bool = True) -> list[str]:
        """Answer the commands that wait, as an engine does between two chunks; their names."""
        commands = self.writer.commands()
        for command in commands:
            answer = f"{command.name} at step {self.step}" if obeyed else "not now"
            if obeyed and command.name == "learning_rate":
                self.say(LearningRateChanged, step=self.step, learning_rate=command.argument)
            if obeyed and command.name in ("pause", "resume"):
                self.enter(Phase.PAUSED if command.name == "pause" else Phase.TRAINING)
            self.reply(command, answer, obeyed=obeyed)
            if obeyed and command.name in ("stop", "stop_now"):
                self.end(Outcome.STOPPED, reason=command.origin)
        return [command.name for command in commands]

    def reply(self, command: Command, answer: str, *, obeyed: bool) -> None:
        self.writer.answer(command, obeyed=obeyed, answer=answer)
        self.say(CommandAnswered, command=command.name, who=command.who, obeyed=obeyed, answer=answer, step=self.step)

    def obey_in_background(self, until: threading.Event) -> threading.Thread:
        """Answer commands from a thread until the event is set."""

        def work() -> None:
            while not until.wait(0.02):
                self.answer_commands()

        thread = threading.Thread(target=work, name="fake-engine", daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        self.writer.close()
