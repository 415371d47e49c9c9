"""The parts of a run that has not trained: its model, its checkpoints, and what saves them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.events import Event
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import RunReader, RunWriter, create
from accel_engine.training.checkpoints.checkpoint import Checkpoints
from accel_engine.training.checkpoints.run_saver import RunSaver
from accel_engine.training.core.assembly import Assembly, assemble
from accel_engine.training.core.batches import Batches, training_batches
from accel_engine.training.progress.due_actions import DueActions
from accel_engine.training.reporting.run_reporter import RunReporter

PLAN = Plan(model="mlp", epochs=2, batch_size=256, optimizer="sgd", learning_rate=0.1)


@dataclass
class Parts:
    """The parts of a run, at a step."""

    assembly: Assembly
    batches: Batches
    checkpoints: Checkpoints
    reporter: RunReporter
    progress: DueActions
    saver: RunSaver

    @property
    def directory(self) -> Path:
        """The run's directory."""
        return self.reporter.run.directory

    @property
    def first_weight(self) -> float:
        """The first number of the model's first weight."""
        return float(np.ravel(self.assembly.model.weights[0])[0])

    def fill(self, value: float) -> None:
        """Set all weights of the model to a number."""
        for weight in self.assembly.model.weights:
            weight.assign(np.full(weight.shape, value))

    def events(self, kind: type[Event]) -> list[Any]:
        """The events of a kind."""
        with closing(RunReader(self.directory)) as reader:
            return [event for event in reader.poll().events if isinstance(event, kind)]


@pytest.fixture
def parts() -> Iterator[Callable[..., Parts]]:
    """Makes the parts of a new run, or of one in a directory, from the fields of its plan."""
    with ExitStack() as opened:

        def make(directory: Path | None = None, step: int = 0, **fields: Any) -> Parts:
            plan = PLAN.replace(**fields)
            assembly = assemble(resolve(plan), tuple(f"CPU:{index}" for index in range(plan.virtual_cpus)), None)
            writer = RunWriter(directory or create(plan))
            opened.callback(writer.close)
            batches = training_batches(assembly)
            opened.callback(batches.close)
            reporter = RunReporter(writer, step)
            checkpoints = Checkpoints(assembly, writer.directory, batches)
            progress = DueActions(plan, "validation_loss", ("loss",), ("loss",), reporter)
            saver = RunSaver(assembly, reporter, checkpoints, progress)
            return Parts(assembly, batches, checkpoints, reporter, progress, saver)

        yield make
