"""Findings that no rule has to find, for the command and the screens that show them."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine import advice
from accel_engine.advice import Category, Confidence, Cure, Evidence, Finding, Gain, Recorded
from accel_engine.advice.cures.cure_task import CureTask, Quantity
from accel_engine.plan import Plan
from accel_engine.race.cure_race import CureRace, speed_race
from accel_engine.requests.try_plan import TrialStart
from accel_engine.run.store.steps import THROUGHPUT

SLOW = Finding(
    "input-wait",
    Category.SPEED,
    "Training waits for input",
    (
        Evidence("The device waits for batches 42% of the time", THROUGHPUT, (40, 120)),
        Evidence("The processors are 97% busy"),
    ),
    Confidence.CERTAIN,
    "42% of the training time",
    (
        Cure(
            "Compile the steps with XLA.",
            {"xla": "on"},
            "Pass jit_compile=True to compile().",
            Gain("1.7 times the steps per second", "the measured share of the time", 1.7),
        ),
        Cure("Decode the images once, to a file of arrays."),
    ),
    weight=0.42,
)

POOR = Finding(
    "diverging",
    Category.QUALITY,
    "The loss rises",
    (Evidence("It fell to 0.41 at step 90, and is 3.2 now", "loss", (90, 150)),),
    Confidence.LIKELY,
    "all that was learned since step 90",
    (Cure("Lower the learning rate.", {"learning_rate": 0.0001}),),
    weight=0.9,
)

MEMORY = Finding(
    "batch-too-large",
    Category.MEMORY,
    "The memory of the GPU is nearly full",
    (Evidence("15.2 of 16.0 GiB are in use"),),
    Confidence.POSSIBLE,
    "the run may fail",
    (Cure("Use a smaller batch.", {"batch_size": 32}),),
    weight=0.2,
)


def find(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    """Let advice on any run be these findings."""

    def rule(_: Recorded) -> Iterator[Finding]:
        yield from findings

    monkeypatch.setattr(advice, "RULES", (rule,))


def fail(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    """Let advice on any run be these findings, beside a rule that fails."""
    find(monkeypatch, *findings)

    def failing(_: Recorded) -> Iterator[Finding]:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(advice, "RULES", (failing, *advice.RULES))


def raced(before: Sequence[float], after: Sequence[float], **changes: Any) -> CureRace:
    """The race of a cure for speed.

    Args:
        before: Examples a second without it, of each round.
        after: The same with it.
        changes: What it changes.
    """

    def trial(rates: Sequence[float]) -> Any:
        ready = SimpleNamespace(compile_seconds=1.0, on_cpu=True)
        return SimpleNamespace(rates=rates, memory=2e8, problem=None, ready=ready)

    start = TrialStart(Plan(), 0, None)
    changed = TrialStart(Plan(**changes), 0, None)
    return speed_race(trial(before), trial(after), CureTask(start, changed, Quantity.SPEED, changes))
