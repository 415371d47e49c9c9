"""Trains each row once in a process, and gives each cell a copy of the trained run."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from accel_engine.model_export import proof
from accel_engine.plan import Plan
from accel_engine.run import runs_directory
from accel_engine.training.plan_stepper import PlanStepper
from engine.conftest import _float32  # noqa: F401 (a fixture)
from engine.training.conftest import Gym, placed  # noqa: F401 (a fixture)

from . import one_process
from .commands import Cell, RefusedError, train
from .materials import MATERIALS, Material, of_task, user_files
from .rows import OF_TASK_MODEL, Row

BASE = {"epochs": 1, "batch_size": 8, "validation_split": 0.2}
"""What all plans have: an epoch of a few steps."""


@dataclass
class Trainings:
    """What was trained in this process.

    Attributes:
        folder: Where.
        files: The user's files that fields name.
        materials: The data that was made, by kind.
        homes: The directory of the program's data with the run of each row.
        refused: Why a row was not trained.
    """

    folder: Path
    files: dict[str, str]
    materials: dict[str, Material] = field(default_factory=dict)
    homes: dict[str, Path] = field(default_factory=dict)
    refused: dict[str, RefusedError] = field(default_factory=dict)

    def material(self, row: Row) -> Material:
        """The data of a row, made when it is first asked for."""
        if row.material not in self.materials:
            folder = self.folder / row.material
            folder.mkdir()
            task = row.material.removeprefix(OF_TASK_MODEL)
            made = MATERIALS[task](folder) if task == row.material else of_task(task, folder)
            self.materials[row.material] = made
        return self.materials[row.material]

    def plan(self, row: Row) -> Plan:
        """The plan of a row."""
        fields = {**BASE, **self.material(row).fields, **row.fields}
        return Plan.from_mapping({name: self._resolved(value) for name, value in fields.items()})

    def _resolved(self, value: Any) -> Any:
        return self.files.get(value, value) if isinstance(value, str) else value


@pytest.fixture(scope="session")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    """What this process trains."""
    folder = tmp_path_factory.mktemp("combinations")
    return Trainings(folder, dict(user_files(folder)))


@pytest.fixture
def make_cell(
    placed: None,  # noqa: F811 (the fixture)
    trainings: Trainings,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Callable[[Row], Cell]]:
    """Makes the cell of a row, without a run; with :meth:`with_run`, with a copy of the trained one."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    one_process.install(monkeypatch, Gym())
    monkeypatch.setattr(proof, "LATENCY_RUNS", 3)
    monkeypatch.setattr("accel_engine.model_export.serving_batching.SECONDS", 0.02)
    take_for = PlanStepper.take_for
    monkeypatch.setattr(PlanStepper, "take_for", lambda self, seconds: take_for(self, min(seconds, 0.02)))

    def make(row: Row) -> Cell:
        folder = tmp_path / "here"
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        plan = trainings.plan(row)
        plan_file = tmp_path / f"{row.id.replace(':', '-').replace('/', '-')}.toml"
        plan_file.write_text(tomlkit.dumps(plan.changed()))
        return Cell(row, trainings.material(row), plan, plan_file, folder, capfd)

    yield make
    monkeypatch.chdir(tmp_path)


def trained(cell: Cell, trainings: Trainings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home with the run of a cell's row, which is trained if it is not yet.

    Raises:
        RefusedError: Its training was refused.
    """
    name = cell.row.id
    if name not in trainings.homes and name not in trainings.refused:
        home = trainings.folder / f"home-{len(trainings.homes) + len(trainings.refused)}"
        with monkeypatch.context() as patch:
            patch.setenv("ACCEL_TUI_HOME", str(home))
            try:
                train(cell)
            except RefusedError as error:
                trainings.refused[name] = error
            else:
                trainings.homes[name] = home
    if name in trainings.refused:
        raise trainings.refused[name]
    return trainings.homes[name]


def take_copy(home: Path) -> Path:
    """Copy the only run of another home to the present one."""
    (source,) = (path for path in (home / "runs").iterdir() if not path.name.startswith("."))
    target = runs_directory() / source.name
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copytree(source, target)
    for path in (target, target.parent):
        os.chmod(path, 0o700)
    return target
