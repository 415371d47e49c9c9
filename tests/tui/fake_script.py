"""A script under ``accel-tui run``, without script and supervisor: a test says when a part begins and ends."""

import os
import socket
import time
from typing import Any

from accel_engine.events import (
    EpochEnded,
    LearningRateChanged,
    Outcome,
    PartEnded,
    PartStarted,
    Phase,
    RunEnded,
    RunStarted,
    Validated,
)
from accel_engine.run.runs.creation import create_recorded
from example_events import model_built
from tui.fake_engine import FakeEngine

COMMAND = "accel-tui run train.py -- --lr 3"


class FakeScript(FakeEngine):
    """Writes the run of a script as this process, as the script's supervisor does."""

    def __init__(self) -> None:
        self.values = {"name": "train.py", "model": "", "data": "train.py", "strategy": "", "epochs": 0}
        super().__init__(directory=create_recorded(self.values, COMMAND, launched=True))
        self.epoch = 0
        self.part = PartStarted(time=0.0, part=0, name="", step=0, epoch=0)
        self.metrics: dict[str, float] = {}

    def begin(self, first_step: int = 0) -> "FakeScript":
        started = RunStarted(
            time=time.time(),
            run=self.directory.name,
            name="train.py",
            plan=self.values,
            first_step=first_step,
            pid=os.getpid(),
            host=socket.gethostname(),
            versions={},
        )
        self.writer.begin(started)
        self.enter(Phase.SCRIPT)
        return self

    def begin_part(
        self, name: str, *, epochs: int = 2, steps_per_epoch: int = 100, parsed: bool = False, rate: float = 1e-3
    ) -> "FakeScript":
        """Begin a part; if it is a fit, with its model."""
        self.steps_per_epoch = steps_per_epoch
        self.part = PartStarted(
            time=time.time(), part=self.part.part + 1, name=name, step=self.step, epoch=self.epoch, parsed=parsed
        )
        if self.part.part == 1 and not parsed:
            self.values |= {"model": name, "strategy": "default", "epochs": epochs}
            self.writer.write_values(self.values)
        self.writer.write_event(self.part)
        self.enter(Phase.TRAINING)
        if not parsed:
            unknown: dict[str, Any] = {"classes": None, "examples": None, "validation_examples": None}
            self.writer.write_event(
                model_built(
                    time=time.time(),
                    epochs=self.epoch + epochs,
                    steps_per_epoch=steps_per_epoch,
                    series=("loss", "accuracy"),
                    feed="own",
                    **unknown,
                )
            )
            self.say(LearningRateChanged, step=self.step, learning_rate=rate)
        return self

    def end_epoch(self, loss: float = 0.31, accuracy: float = 0.9) -> None:
        self.epoch += 1
        means = {"loss": loss * 0.8, "accuracy": accuracy}
        validation = {"loss": loss, "accuracy": accuracy - 0.02}
        self.metrics = means | {f"validation_{name}": value for name, value in validation.items()}
        self.say(EpochEnded, epoch=self.epoch, step=self.step, metrics=means, seconds=1.0)
        self.say(Validated, epoch=self.epoch, step=self.step, metrics=validation, seconds=0.2)

    def fit(self, name: str, *, epochs: int = 2, steps_per_epoch: int = 100) -> "FakeScript":
        """Train and end a part."""
        self.begin_part(name, epochs=epochs, steps_per_epoch=steps_per_epoch)
        for epoch in range(epochs):
            self.train(steps_per_epoch)
            self.end_epoch(0.9 / (epoch + 1), 0.8 + 0.03 * epoch)
        self.end_part()
        return self

    def end_part(self, outcome: Outcome = Outcome.FINISHED, reason: str = "") -> None:
        self.say(
            PartEnded,
            part=self.part.part,
            name=self.part.name,
            outcome=outcome,
            step=self.step,
            epoch=self.epoch,
            seconds=1.0,
            steps_per_second=200.0,
            metrics=self.metrics,
            reason=reason,
        )
        self.enter(Phase.SCRIPT)

    def end(self, outcome: Outcome = Outcome.FINISHED, reason: str = "", hint: str = "") -> None:
        self.say(
            RunEnded,
            outcome=outcome,
            steps=self.step,
            epochs=self.epoch,
            seconds=83.0,
            steps_per_second=200.0,
            metrics=self.metrics,
            reason=reason,
            hint=hint,
        )
