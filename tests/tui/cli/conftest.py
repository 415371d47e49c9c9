"""What tests of the command line share: the program in this process, and a stand-in for engines."""

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from accel_engine import launch
from accel_engine.devices.reading import Device, Inventory
from accel_engine.events import (
    CommandAnswered,
    DevicesFound,
    EpochEnded,
    Event,
    ModelBuilt,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
)
from accel_engine.plan import Plan
from accel_engine.run import Command, RunReader, RunWriter, create
from accel_tui.cli import main

STEPS = 4
"""Steps an epoch of the stand-in."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture
def run_command(capfd: pytest.CaptureFixture[str]) -> Callable[[str], Outcomes]:
    """Run the words of a command line in this process."""

    def run(words: str) -> Outcomes:
        capfd.readouterr()
        status = main(shlex.split(words))
        captured = capfd.readouterr()
        return Outcomes(status, captured.out, captured.err)

    return run


class Engine:
    """Writes what an engine would say of a run, in the name of this process or of another."""

    def __init__(self, directory: Path, pid: int | None = None) -> None:
        self.directory = directory
        self.writer = RunWriter(directory)
        reader = RunReader(directory)
        self.plan = reader.info().values
        reader.close()
        self.pid = pid or os.getpid()
        self.step = 0

    def say(self, kind: type[Event], **values: Any) -> None:
        self.writer.event(kind(time=time.time(), **values))

    def begin(self, first_step: int = 0) -> None:
        self.step = first_step
        self.writer.begin(self.pid)
        self.say(
            RunStarted,
            run=self.directory.name,
            name=self.plan["name"],
            plan=self.plan,
            first_step=first_step,
            pid=self.pid,
            host="here",
            versions={},
        )
        self.say(PhaseChanged, phase=Phase.IMPORTING, detail="TensorFlow")
        self.say(DevicesFound, devices=({"name": "CPU:0", "kind": "cpu", "device": "cpu:0"},), strategy="Strategy")
        self.say(
            ModelBuilt,
            parameters=1234,
            trainable=1234,
            layers=3,
            input_shape=(8, 8, 1),
            classes=10,
            examples=64 * STEPS,
            validation_examples=64,
            epochs=self.plan["epochs"],
            steps_per_epoch=STEPS,
            global_batch=64,
            per_replica_batch=64,
            dropped_examples=0,
            replicas=1,
            optimizer="Adam",
            loss="sparse_categorical_crossentropy",
            series=("loss", "accuracy"),
            precision="float32",
            xla=False,
            feed="resident",
        )
        self.say(PhaseChanged, phase=Phase.TRAINING)

    def chunk(self, losses: Sequence[float], accuracies: Sequence[float] | None = None) -> None:
        now = time.time()
        series = {"loss": losses, "accuracy": accuracies or [0.5] * len(losses)}
        self.writer.chunk(self.step, now - 0.01, now, series)
        self.step += len(losses)

    def epoch(self, number: int, loss: float = 0.25) -> None:
        self.chunk([loss] * STEPS)
        self.say(EpochEnded, epoch=number, step=self.step, metrics={"loss": loss, "accuracy": 0.9}, seconds=0.1)
        validation = {"loss": 0.5, "accuracy": 0.75}
        self.say(Validated, epoch=number, step=self.step, metrics=validation, seconds=0.1)

    def end(self, outcome: Outcome = Outcome.FINISHED, reason: str = "", hint: str = "") -> None:
        self.say(
            RunEnded,
            outcome=outcome,
            steps=self.step,
            epochs=self.step // STEPS,
            seconds=1.5,
            steps_per_second=400.0,
            metrics={"loss": 0.25, "accuracy": 0.9},
            reason=reason,
            hint=hint,
        )
        self.writer.close()

    def train(self) -> None:
        """Train the whole plan."""
        self.begin()
        for epoch in range(1, self.plan["epochs"] + 1):
            self.epoch(epoch)
        self.end()

    def next_command(self, timeout: float = 30.0) -> Command:
        """Wait for a command."""
        deadline = time.monotonic() + timeout
        while not (commands := self.writer.commands()):
            assert time.monotonic() < deadline, "waited in vain for a command"
            time.sleep(0.01)
        return commands[0]

    def obey(self, answer: str, *, obeyed: bool = True) -> Command:
        """Wait for a command and answer it."""
        command = self.next_command()
        self.writer.answer(command, obeyed=obeyed, answer=answer)
        self.say(CommandAnswered, command=command.name, who=command.who, obeyed=obeyed, answer=answer, step=self.step)
        return command


@dataclass
class Engines:
    """Stands in for :func:`accel_engine.launch.start`."""

    act: Callable[[Engine], None] = Engine.train
    pid: int | None = None
    started: list[Path] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, directory: Path) -> "Engines":
        self.started.append(directory)
        thread = threading.Thread(target=self.act, args=(Engine(directory, self.pid),))
        self.threads.append(thread)
        thread.start()
        return self

    def wait(self, timeout: float | None = None) -> int:
        for thread in self.threads:
            thread.join(timeout)
        return 0


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    """Start stand-ins instead of engines."""
    stand_in = Engines()
    monkeypatch.setattr(launch, "start", stand_in.start)
    monkeypatch.setattr(launch, "installation", lambda: launch.Installation("tensorflow", "2"))
    monkeypatch.setattr("accel_tui.cli.train.detect", lambda: Inventory((Device("cpu:0", "cpu", "A processor"),)))
    return stand_in


@pytest.fixture
def new_run() -> Callable[..., Engine]:
    """Make a run and the engine that is to write it."""

    def make(pid: int | None = None, **values: Any) -> Engine:
        return Engine(create(Plan(**{"epochs": 2, **values})), pid)

    return make


@pytest.fixture
def dead_pid() -> int:
    """The id of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid
