"""Searches with stand-in runs: what they look for, and running them to their end."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accel_engine.search.definition import Objective, StudyDefinition
from accel_engine.search.process import run_search
from accel_engine.search.ranges import parse_all
from accel_engine.search.storage import create_study
from accel_engine.search.study_database import StudyDatabase, create_study_database
from accel_engine.search.study_paths import study_directory
from accel_engine.search.study_reader import StudyReader
from accel_engine.search.study_writer import StudyWriter
from accel_engine.search.trial import Trial
from engine.search.stand_in_runs import Metrics, StandInRuns

ACCURACY = Objective("validation_accuracy", maximize=True)

OVER = ("learning_rate=1e-4..1e-1:log", "batch_size=32,64,128")


def learns(plan: Mapping[str, Any], epoch: int) -> Mapping[str, float]:
    """An accuracy that grows with the epochs, highest with a learning rate of 0.01 and small batches."""
    distance = abs(math.log10(plan["learning_rate"] or 0.001) + 2)
    accuracy = (1 - 0.3 * distance - plan["batch_size"] / 2000) * (1 - 0.5**epoch)
    return {"loss": 1 - accuracy, "validation_loss": 1 - accuracy, "validation_accuracy": accuracy}


def define(name: str = "s", over: tuple[str, ...] = OVER, **changes: Any) -> StudyDefinition:
    """A search of 12 trials of 4 epochs that confirms nothing, one trial at a time."""
    usual: dict[str, Any] = {"trials": 12, "confirm": 0, "at_once": 1, "objectives": (ACCURACY,), "plan": {"epochs": 4}}
    return StudyDefinition(name=name, parameters=parse_all(over), **(usual | changes))


class Search:
    """A search with stand-in runs.

    Args:
        definition: The search.
        tmp_path: Where its runs are.
        metrics: What they report.
    """

    def __init__(self, definition: StudyDefinition, tmp_path: Path, metrics: Metrics = learns) -> None:
        self.directory = study_directory(definition.name)
        create_study(self.directory, definition)
        self.runs = StandInRuns(tmp_path / f"runs-{definition.name}", metrics)

    def run(self, each: Callable[[StudyReader], object] = lambda _: None) -> Mapping[str, Any]:
        """Run to the end; ``each`` is called at each wait."""
        with self.study() as study:

            def inspect(_: float) -> None:
                study.refresh()
                each(study)

            return run_search(self.directory, self.runs, inspect)

    def study(self) -> StudyReader:
        return StudyReader(self.directory)

    def trials(self) -> list[Trial]:
        with self.study() as study:
            return list(study.trials.values())

    def values(self) -> list[Mapping[str, Any]]:
        """The values of the trials that have their own runs."""
        return [each.values for each in self.trials() if each.duplicate_of is None]

    def request(self, name: str, trial: int | None = None, argument: Any = None) -> int:
        with StudyDatabase(self.directory) as database:
            return database.request(name, trial, argument)

    def answer(self, command: int) -> tuple[bool, str] | None:
        with StudyDatabase(self.directory) as database:
            return database.answer_to(command)


def joined(search: Search, home: Path) -> StudyWriter:
    """The study of a search, as another machine that has joined it writes it."""
    directory = home / "studies" / search.directory.name
    directory.mkdir(parents=True)
    with StudyDatabase(search.directory) as database:
        create_study_database(directory, database.part.storage)
    return StudyWriter(directory)
