"""Runs of trials without engines: each look at a run that trains is an epoch, and all of it is on disk."""

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.run.engine.status import Status
from accel_engine.search.trial_runs import Observation, RunMetrics

Metrics = Callable[[Mapping[str, Any], int], Mapping[str, float]]
"""The metrics of a plan's fields after an epoch."""


class StandInError(Exception):
    """Raised by the metrics of a plan that cannot be trained; with ``out of memory`` for that."""


@dataclass
class StandInRuns:
    """Runs in files.

    Attributes:
        directory: Where.
        metrics: What runs report.
        at_once: Slots of the machine.
        waiting: Trials that may wait besides.
        started: Ids of the runs in the order of their starts.
        reopened: Ids of the runs in the order in which they were reopened.
        held: Why runs do not start, by their ids: in words, or what is raised.
    """

    directory: Path
    metrics: Metrics
    at_once: int = 1
    waiting: int = 0

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.started: list[str] = []
        self.reopened: list[str] = []
        self.held: dict[str, str | Exception] = {}

    def slots(self) -> int:
        return self.at_once

    def ahead(self) -> int:
        return self.waiting

    def create(self, plan: Plan, study: str, trial: int | None) -> str:
        run = f"r{len(list(self.directory.iterdir())):03}"
        values = {**plan.to_mapping()}
        self.write(
            run,
            {
                "study": study,
                "trial": trial,
                "plan": values,
                "done": 0,
                "status": "queued",
                "reason": "",
                "created": time.time(),
            },
        )
        return run

    def find(self, study: str) -> Mapping[str, int | None]:
        runs = {path.stem: self.read(path.stem) for path in sorted(self.directory.iterdir())}
        return {run: each["trial"] for run, each in runs.items() if each["study"] == study}

    def exists(self, run: str) -> bool:
        return (self.directory / f"{run}.json").exists()

    def start(self, run: str) -> str:
        if isinstance(held := self.held.get(run, ""), Exception):
            raise held
        if held:
            return held
        self.started.append(run)
        self.write(run, self.read(run) | {"status": "running"})
        return ""

    def reopen(self, run: str, changes: Mapping[str, Any]) -> None:
        stored = self.read(run)
        if Status(stored["status"]).live:
            return
        plan = stored["plan"] | changes
        if stored["done"] >= plan["epochs"]:
            raise PlanError("epochs", plan["epochs"], "all are trained")
        self.reopened.append(run)
        self.write(run, stored | {"status": "queued", "plan": plan, "reason": ""})

    def observe(self, run: str) -> Observation:
        stored = self.read(run)
        if stored["status"] == "running":
            stored |= self._after_an_epoch(stored)
            self.write(run, stored)
        plan = stored["plan"]
        measured = [
            RunMetrics(each, each, stored["created"] + each / 1000, self.metrics(plan, each))
            for each in range(1, stored["done"] + 1)
        ]
        no_memory = stored["reason"] == "out of memory"
        return Observation(Status(stored["status"]), measured, stored["reason"], out_of_memory=no_memory)

    def _after_an_epoch(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        done = stored["done"] + 1
        try:
            self.metrics(stored["plan"], done)
        except StandInError as error:
            return {"status": "failed", "reason": str(error)}
        return {"done": done, "status": "finished" if done >= stored["plan"]["epochs"] else "running"}

    def stop(self, run: str, reason: str) -> None:
        stored = self.read(run)
        if Status(stored["status"]).live:
            self.write(run, stored | {"status": "stopped", "reason": reason})

    def figures(self, run: str, wanted: Collection[str]) -> Mapping[str, float]:
        stored = self.read(run)
        known = {"time": float(stored["done"] * stored["plan"]["batch_size"]), "memory": 1e6, "latency": 0.01}
        return {name: known[name] for name in wanted}

    def read(self, run: str) -> dict[str, Any]:
        stored: dict[str, Any] = json.loads((self.directory / f"{run}.json").read_text())
        return stored

    def write(self, run: str, values: Mapping[str, Any]) -> None:
        path = self.directory / f"{run}.json"
        unfinished = path.parent.parent / f"{run}.unfinished"
        unfinished.write_text(json.dumps(values))
        unfinished.replace(path)
