"""Makes the runs of ``advice.py``: trained by the engine in this process, or recorded as scripts do it."""

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import advice_data
from accel_engine.advice import Finding, Recorded, find_troubles, read_recorded
from accel_engine.devices.device_types import Device, Inventory, Reading, Sample
from accel_engine.errors import RunError
from accel_engine.events import Event, RunStarted
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.process.start_run import prepare_run, start_on_engine
from accel_engine.run import RunWriter, create
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.store.steps import TIME

MODELS = Path(__file__).with_name("advice_models.py")
STREAMS = Path(__file__).with_name("advice_streams.py")
MACHINE = Inventory((Device("cpu:0", "cpu", "a processor", 8 << 30, os.cpu_count() or 1),))


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A run that the engine trains.

    Attributes:
        data: A name of the catalogue, ``own:FUNCTION`` of ``advice_streams.py``, or makes arrays.
        changes: Put a fault into these.
        model: A name of the catalogue, or ``own:FUNCTION`` of ``advice_models.py``.
        plan: Other fields of the plan.
    """

    data: str | Callable[[], advice_data.Arrays] = "digits"
    changes: tuple[advice_data.Change, ...] = ()
    model: str = "own:dense"
    plan: Mapping[str, Any] = field(default_factory=dict)

    def make(self, directory: Path) -> Path:
        """Train it; returns the run's directory.

        Args:
            directory: For the files of the data.
        """
        return train(self.plan_of(directory))

    def plan_of(self, directory: Path) -> Plan:
        """The plan, with its data written to a directory."""
        data = self.data
        if not isinstance(data, str):
            arrays = data()
            for change in self.changes:
                arrays = change(arrays)
            data = str(directory / "data.npz")
            np.savez(data, allow_pickle=False, **arrays)
        data = data.replace("own:", f"{STREAMS}:")
        model = self.model.replace("own:", f"{MODELS}:")
        return Plan(**{"data": data, "model": model, "xla": "off", **self.plan})


@dataclass(frozen=True, kw_only=True)
class Launched(Trained):
    """A run that separate engine processes train, as the program does it."""

    def make(self, directory: Path) -> Path:
        """Train it; returns the run's directory.

        Raises:
            RunError: It failed.
        """
        run = prepare_run(self.plan_of(directory))
        if start_on_engine(run, None).wait(TRAINING_SECONDS):
            raise RunError(f"run {run.name} failed: {(run / LOG).read_text()[-2000:]}")
        return run


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """A run that a function of this process records.

    Attributes:
        script: Called with a directory for its files; returns the run's directory.
    """

    script: Callable[[Path], Path]

    def make(self, directory: Path) -> Path:
        """Run it; returns the run's directory."""
        return self.script(directory)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A run of another maker, into which readings of devices or events are written as they would be elsewhere.

    Attributes:
        run: Makes the run.
        samples: Readings of devices, as :class:`Reading` by name, of each of 20 times while it trained.
        events: Further events, by the time of the last step.
    """

    run: Trained
    samples: Mapping[str, Callable[[int], Mapping[str, Reading]]] = field(default_factory=dict)
    events: Callable[[float], list[Event]] = lambda _: []

    def make(self, directory: Path) -> Path:
        """Train it and write them; returns the run's directory."""
        run = self.run.make(directory)
        times = read_recorded(run).of(TIME).mean
        with closing(RunWriter(run)) as writer:
            for event in self.events(float(times[-1])):
                writer.write_event(event)
        for index, time in enumerate(np.linspace(times[0], times[-1], SAMPLES)):
            # A writer writes all readings at first, and then some of them only every five seconds.
            with closing(RunWriter(run)) as writer:
                writer.write_samples([Sample(float(time), name, dict(of(index))) for name, of in self.samples.items()])
        return run


SAMPLES = 20

TRAINING_SECONDS = 300.0
"""How long an engine process may take for a run, at most."""


def train(plan: Plan) -> Path:
    """Train a plan in this process, and return the run's directory."""
    from accel_engine.private_names.keras_names import reset_names
    from accel_engine.training.commands.command_mailbox import CommandMailbox
    from accel_engine.training.core import device_visibility
    from accel_engine.training.trainer import Trainer

    reset_names()
    # TensorFlow's devices can be configured only once in a process.
    device_visibility.place_on_visible = lambda resolved, _: resolved
    device_visibility.configure = lambda resolved, *_: ("CPU:0",) if resolved else ()
    directory = create(plan)
    with closing(RunWriter(directory)) as writer:
        writer.begin(
            RunStarted(
                time=0.0, run=directory.name, name="", plan={}, first_step=0, pid=os.getpid(), host="", versions={}
            )
        )
        writer.write_event(Trainer(resolve(plan), writer, CommandMailbox(), MACHINE, 0).train())
    return directory


@dataclass(frozen=True)
class Advised:
    """A run with the advice on it."""

    recorded: Recorded
    findings: tuple[Finding, ...]


def advised(directory: Path) -> Advised:
    """Read a run and advise on it."""
    recorded = read_recorded(directory)
    return Advised(recorded, find_troubles(recorded))
