"""What tests of the command line share: the program in this process, and a stand-in for engines."""

import shlex
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy.typing as npt
import pytest

from accel_engine.devices.device_types import Device, Inventory
from accel_engine.errors import EngineMissingError
from accel_engine.events import EpochEnded, Validated
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.run import Command, RunReader, create
from accel_tui.cli import main, train
from tui import fake_engine
from tui.fake_engine import FakeEngine
from waiting import wait_until

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
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to write into."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture(autouse=True)
def _locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every character, wherever the tests run."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.fixture
def run_command(capfd: pytest.CaptureFixture[str]) -> Callable[[str], Outcomes]:
    """Run the words of a command line in this process."""

    def run(words: str) -> Outcomes:
        capfd.readouterr()
        status = main(shlex.split(words))
        captured = capfd.readouterr()
        return Outcomes(status, captured.out, captured.err)

    return run


class Engine(FakeEngine):
    """Says what an engine would of a run that was made, with epochs of few steps."""

    def __init__(self, directory: Path, pid: int | None = None) -> None:
        with closing(RunReader(directory)) as reader:
            super().__init__(Plan.from_mapping(reader.info().plan_values), directory=directory, pid=pid)
        self.steps_per_epoch = STEPS
        self.told = 0.0

    def begin(self, first_step: int = 0) -> "Engine":
        super().begin(first_step)
        self.build()
        self.told = time.time()
        return self

    def chunk(self, loss: npt.ArrayLike, accuracy: npt.ArrayLike | None = None, **_: float) -> None:
        # It ends now, as the end of all may come soon, and began neither before the engine nor within the one before.
        now = time.time()
        began = max(self.told, now - 0.01)
        super().chunk(loss, accuracy, seconds=now - began, at=began)
        self.told = now

    def epoch(self, number: int, loss: float = 0.25) -> None:
        self.chunk([loss] * STEPS)
        self.say(EpochEnded, epoch=number, step=self.step, metrics={"loss": loss, "accuracy": 0.9}, seconds=0.1)
        validation = {"loss": 0.5, "accuracy": 0.75}
        self.say(Validated, epoch=number, step=self.step, metrics=validation, seconds=0.1)

    def end(self, *words: Any, **more: Any) -> None:
        super().end(*words, **more)
        self.close()

    def train(self) -> None:
        """Train the whole plan."""
        self.begin()
        for epoch in range(1, self.plan.epochs + 1):
            self.epoch(epoch)
        self.end()

    def next_command(self) -> Command:
        """Wait for a command."""
        wait_until(self.writer.commands, "a command")
        return self.writer.commands()[0]

    def answer(self, answer: str, *, obeyed: bool = True) -> Command:
        """Wait for a command and answer it."""
        command = self.next_command()
        self.reply(command, answer, obeyed=obeyed)
        return command


@dataclass
class Engines:
    """Stands in for :func:`accel_engine.process.engine_process.start_engine`."""

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


def no_warm_engine() -> NoReturn:
    """Stands in for :class:`accel_engine.process.warm_engine.WarmEngine`."""
    raise EngineMissingError("commands start their engines later, in these tests")


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    """Start stand-ins instead of engines."""
    stand_in = Engines()
    monkeypatch.setattr(engine_process, "start_engine", stand_in.start)
    monkeypatch.setattr(train, "WarmEngine", no_warm_engine)
    monkeypatch.setattr(engine_process, "find_installation", lambda: engine_process.Installation("tensorflow", "2"))
    monkeypatch.setattr(
        "accel_engine.process.start_run.detect", lambda: Inventory((Device("cpu:0", "cpu", "A processor"),))
    )
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
    return fake_engine.dead_pid()
