"""Fixtures that train in this process, on four logical CPUs configured once for all tests."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from accel_engine.devices.device_types import Device, Inventory
from accel_engine.events import Event, Phase, PhaseChanged, RunEnded
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import Chunk, RunReader, RunWriter, create
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.run.engine.commands import Command
from accel_engine.run.runs.creation import reopen
from accel_engine.training.checkpoints import run_saver
from accel_engine.training.commands.command_mailbox import CommandMailbox
from accel_engine.training.core import compiled_chunk, device_visibility
from accel_engine.training.trainer import Trainer

RANDOM = """
import keras
from keras import layers

def build(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(32), layers.BatchNormalization(),
                             layers.Dropout(0.3), layers.Dense(classes, activation="softmax")])

class Noise(layers.Layer):
    def call(self, x, training=False):
        return x + keras.random.normal(keras.ops.shape(x)) if training else x

def unseeded(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Flatten(), layers.Dense(32), Noise(),
                             layers.Dense(classes, activation="softmax")])
"""
"""A small custom model whose batch normalization and dropout have state other than weights."""

MACHINE = Inventory((Device("cpu:0", "cpu", "a processor", 8 << 30, 2),))


@pytest.fixture(autouse=True)
def placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the logical CPUs, which TensorFlow configures once; however slow a machine is, no run here is a long one."""
    monkeypatch.setattr(run_saver, "PROVEN_AFTER", float("inf"))
    monkeypatch.setattr(device_visibility, "place_on_visible", lambda resolved, _: resolved)
    monkeypatch.setattr(
        device_visibility,
        "configure",
        lambda resolved, *_: tuple(f"CPU:{index}" for index in range(resolved.plan.virtual_cpus)),
    )


@dataclass
class Trained:
    """A trained run and its events."""

    directory: Path
    ended: RunEnded
    events: tuple[Event, ...]
    chunks: tuple[Chunk, ...]
    series: dict[str, np.ndarray]

    def only(self, kind: type[Event]) -> Any:
        """The only event of a kind."""
        (event,) = self.all(kind)
        return event

    def all(self, kind: type[Event]) -> list[Any]:
        """All events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


class Gym:
    """Trains plans, and sends commands to the trainer at given steps.

    Attributes:
        steps: Steps of a chunk, so that commands are taken where tests want them.
        trainer: Trained the last plan.
        whole: Runs of plans that nothing was asked of, by plan: tests have many of them in common.
    """

    whole: ClassVar[dict[Plan, Trained]] = {}

    def __init__(self) -> None:
        self.steps = 2
        self.trainer: Trainer | None = None

    def train_once(self, plan: Plan) -> Trained:
        """Train a plan in chunks of two steps; cached between tests."""
        if plan not in self.whole:
            self.whole[plan] = self.train(plan)
        return self.whole[plan]

    def train(
        self,
        plan: Plan,
        *,
        at: dict[int, list[tuple[Any, ...]]] | None = None,
        when: dict[Phase, list[tuple[Any, ...]]] | None = None,
        run: Any = None,
    ) -> Trained:
        """Train a plan, or continue a run.

        Args:
            plan: What to train.
            at: Commands (a name and an argument) by the number of steps after which they arrive.
            when: Commands by the phase at whose beginning they arrive.
            run: The directory of a run to go on with.
        """
        if run is None:
            directory = create(plan)
        else:
            directory = run
            reopen(directory, plan)
        return self.train_directory(directory, plan, at=at, when=when)

    def train_directory(
        self,
        directory: Path,
        plan: Plan,
        *,
        at: dict[int, list[tuple[Any, ...]]] | None = None,
        when: dict[Phase, list[tuple[Any, ...]]] | None = None,
    ) -> Trained:
        """Train a run that waits for an engine; see :meth:`train`."""
        first = latest_checkpoint(directory)
        writer = RunWriter(directory, waits=True)
        writer.rewind(first)
        writer.begin()
        mailbox = CommandMailbox()
        self._ask(mailbox, dict(at or {}), dict(when or {}), writer)
        self.trainer = Trainer(resolve(plan), writer, mailbox, MACHINE, first)
        ended = self.trainer.train()
        writer.write_event(ended)
        writer.close()
        reader = RunReader(directory)
        update = reader.poll()
        names = {name for chunk in update.chunks for name in chunk.series}
        series = {name: np.concatenate([chunk.series[name] for chunk in update.chunks]) for name in names}
        reader.close()
        return Trained(directory, ended, update.events, update.chunks, series)

    def _ask(
        self,
        mailbox: CommandMailbox,
        at: dict[int, list[tuple[Any, ...]]],
        when: dict[Phase, list[tuple[Any, ...]]],
        writer: RunWriter,
    ) -> None:
        record: Callable[..., None] = writer.write_chunk
        say = writer.write_event

        def post(commands: list[tuple[Any, ...]]) -> None:
            for name, *argument in commands:
                mailbox.post(Command(0, 0.0, "somebody@here", name, *argument))

        def chunk(first_step: int, started: float, ended: float, series: dict[str, np.ndarray]) -> None:
            record(first_step, started, ended, series)
            for step in [step for step in at if first_step + len(series["loss"]) >= step]:
                post(at.pop(step))

        def event(said: Event) -> None:
            say(said)
            if isinstance(said, PhaseChanged):
                post(when.pop(said.phase, []))

        writer.write_chunk = chunk  # type: ignore[method-assign]
        writer.write_event = event  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The ``model`` of a plan for :data:`RANDOM`."""
    path = tmp_path_factory.mktemp("models") / "random_model.py"
    path.write_text(RANDOM)
    return f"{path}:build"


@pytest.fixture
def gym(monkeypatch: pytest.MonkeyPatch) -> Gym:
    """Trains plans in chunks of a fixed number of steps, two by default."""
    made = Gym()
    monkeypatch.setattr(
        compiled_chunk.ChunkSize, "steps", property(lambda _: made.steps, lambda *_: None), raising=False
    )
    return made
