"""The runs that the pictures show, trained for the purpose by the real engine."""

import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from accel_engine import launch
from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status, create, list_runs
from accel_engine.run.annotations import set_tags
from accel_engine.run.paths import LOG

PATIENCE = 180.0
"""Seconds to wait for anything before giving up."""

MODELS = """
import time

def broken():
    raise ValueError("a model of the user's own may fail too")

def slow():
    time.sleep(3600)
"""


@dataclass(frozen=True)
class Runs:
    """Their directories."""

    finished: Path
    failed: Path
    building: Path
    live: Path
    compared: tuple[Path, ...]


def train(home: Path) -> Runs:
    """Train them; the last goes on."""
    mine = home / "my_model.py"
    mine.write_text(MODELS)
    failed = begin(Plan(model=f"{mine}:broken", name="my-own"))
    ended(failed)
    forget_places(failed)
    compared = tuple(
        begin(Plan(model=model, learning_rate=rate, epochs=30, name=name, gradient_norm="on", xla="off"))
        for model, rate, name in (
            ("mlp", 1e-3, "flat"),
            ("cnn", 1e-3, "convolutions"),
            ("cnn", 1e-4, "convolutions-slow"),
        )
    )
    for directory in compared:
        ended(directory)
        set_tags(directory, ["digits"])
    finished = begin(Plan(name="first-try"))
    ended(finished)
    building = begin(Plan(model=f"{mine}:slow", name="my-next"))
    live = begin(Plan(epochs=1000, batch_size=32, learning_rate=1e-4, name="long-one", gradient_norm="on", xla="off"))
    wait(lambda: validations(live) >= 20, "the live run")
    return Runs(finished, failed, building, live, compared)


def begin(plan: Plan) -> Path:
    """Start a run."""
    directory = create(plan)
    launch.start(directory)
    return directory


def ended(directory: Path) -> None:
    """Wait until a run has ended."""
    wait(lambda: not status(directory).live, f"the end of {directory}")


def forget_places(directory: Path) -> None:
    """Have a run's log say nothing of where this machine keeps the program and Python."""
    log = directory / LOG
    text = log.read_text()
    for here, elsewhere in (
        (Path(__file__).parents[1], "/usr/src/accel-tui"),
        (sys.prefix, "/usr"),
        (sys.base_prefix, "/usr"),
    ):
        text = text.replace(str(here), elsewhere)
    log.write_text(text)


def status(directory: Path) -> Status:
    """How a run stands."""
    with closing(RunReader(directory)) as reader:
        return reader.info().status


def validations(directory: Path) -> int:
    """How often a run was validated."""
    with closing(RunReader(directory)) as reader:
        return sum(event.kind() == "validated" for event in reader.poll().events)


def wait(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain for {what}: {[(run.id, run.status) for run in list_runs()]}")
        time.sleep(0.1)
