"""Makes the runs of ``advice.py``: trained by the engine in this process, or recorded as scripts do it."""

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import advice_data
from accel_engine.advice import Finding, Recorded, advise, read_recorded
from accel_engine.devices.device_types import Device, Inventory
from accel_engine.events import RunStarted
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import RunWriter, create

MODELS = Path(__file__).with_name("advice_models.py")
MACHINE = Inventory((Device("cpu:0", "cpu", "a processor", 8 << 30, os.cpu_count() or 1),))


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A run that the engine trains.

    Attributes:
        data: A name of the catalogue, or makes arrays.
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
        data = self.data
        if not isinstance(data, str):
            arrays = data()
            for change in self.changes:
                arrays = change(arrays)
            data = str(directory / "data.npz")
            np.savez(data, allow_pickle=False, **arrays)
        model = self.model.replace("own:", f"{MODELS}:")
        return train(Plan(**{"data": data, "model": model, "xla": "off", **self.plan}))


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
    return Advised(recorded, advise(recorded))
