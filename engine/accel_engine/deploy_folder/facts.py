"""All that the files of a folder say about a model, its run and its speed."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine.deploy_folder.rendering import dns_label
from accel_engine.deployment.sizing import Sizing
from accel_engine.errors import PlanError
from accel_engine.model_server.service import Service
from accel_engine.plan import PATH_FIELDS, Plan
from accel_engine.requests.evaluate import Evaluation
from accel_engine.requests.export_model import Export
from accel_engine.run.history.history import read_history
from accel_engine.run.store.annotations import read_annotations
from accel_engine.run.store.database import reading
from accel_engine.run.store.meta import read_meta


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderMeasurement:
    """How fast the server of a folder was, on the machine that wrote it; seconds and bytes."""

    load_seconds: float
    """From its start until it was ready."""
    memory_bytes: int
    """The most that it had in memory; 0 if unknown."""
    threads: int
    """Its threads."""
    rate: float
    """Requests a second."""
    p50: float
    p99: float
    connections: int
    """Clients that each waited for their answer."""
    largest: float = math.nan
    """The largest difference of an answer from the trained model's, in parts of its scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts on a deployed model for READMEs and model cards."""

    service: Service
    export: Export
    evaluation: Evaluation | None
    plan: Plan
    model: str
    """The model, in a line."""
    trained: str
    """The day on which its training began; empty if unknown."""
    training_examples: int | None
    validation_examples: int | None
    note: str
    """The user's note on the run."""
    licence: str
    """The licence of the model; empty if the user gave none."""
    measured: FolderMeasurement | None = None
    sizing: Sizing | None = None
    """The measurements for a target of latency and rate; ``None`` without one."""

    @property
    def label(self) -> str:
        """The name as a label of DNS, for Kubernetes and images."""
        return dns_label(self.service.name)

    @property
    def plan_lines(self) -> list[tuple[str, str]]:
        """The plan's fields that differ from their defaults, without folders of the machine that trained."""
        return [(name, _plan_value(name, value)) for name, value in self.plan.changed().items()]


def read_facts(
    directory: Path, service: Service, export: Export, evaluation: Evaluation | None, licence: str = ""
) -> Facts:
    """Gather what a run has recorded.

    Args:
        directory: The run's directory.
        service: What is served.
        export: How it was verified.
        evaluation: Its metrics with intervals.
        licence: Of the model.

    Raises:
        RunError: The run cannot be read.
    """
    history = read_history(directory)
    with reading(directory) as database:
        notes = read_annotations(read_meta(database))
    built = history.built
    plan = _plan_of(history.plan)
    return Facts(
        service=service,
        export=export,
        evaluation=evaluation,
        plan=plan,
        model=_model_line(plan, built.parameters if built else None, built.loss if built else ""),
        trained=time.strftime("%Y-%m-%d", time.gmtime(history.started.time)) if history.started else "",
        training_examples=built.examples if built else None,
        validation_examples=built.validation_examples if built else None,
        note=notes.note,
        licence=licence,
    )


def _plan_of(values: Mapping[str, Any]) -> Plan:
    """The plan of a run; without what only training needs where that is no longer right, as a device that is gone."""
    try:
        return Plan.from_mapping(values)
    except PlanError:
        return Plan.of_trained_run(values)


def _model_line(plan: Plan, parameters: int | None, loss: str) -> str:
    words = Path(plan.model).name
    if parameters is not None:
        words += f", {parameters:,} parameters"
    return f"{words}, trained with {'several losses' if loss == 'several' else loss}" if loss else words


def _plan_value(name: str, value: Any) -> str:
    if name in PATH_FIELDS and isinstance(value, str):
        return Path(value).name  # the folder goes to other machines
    return value if isinstance(value, str) else json.dumps(value)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown, of texts that are quoted already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(value: float | None, digits: int = 4) -> str:
    """A number as text; a dash for none."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


def versions_line(versions: Mapping[str, str]) -> str:
    """The versions of programs, in a line."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())
