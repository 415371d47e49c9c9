"""Applies cures, and changes that harm, to runs of ``advice.py``: to live ones, and to ended ones."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accel_engine.advice.cures.advice_actions import apply_finding
from accel_engine.advice.cures.settle_cure import SettledCure, apply_and_settle

import advice_data as data
from accel_engine.advice import advise, read_recorded
from accel_engine.errors import AccelError
from accel_engine.plan.changed_plan import options_text
from accel_engine.process import run_change
from accel_engine.process.start_run import hand_over, prepare_run
from accel_engine.run import RunReader
from advice_runs import Trained

LEAST_STEPS = 100
"""Steps that a live run has taken before something is applied."""

PATIENCE = 120.0
"""Seconds to wait for a finding on a live run."""


@dataclass(frozen=True, kw_only=True)
class Application:
    """Something that is applied to a run.

    Attributes:
        name: A short name.
        run: Makes the run, which is applied to while it trains if it is ``live``.
        finding: Id of the finding whose cure is applied; empty for a change that harms.
        changes: The change that harms.
        live: Whether the run trains meanwhile.
        number: Which of the finding's cures that change the plan, from 1.
    """

    name: str
    run: Trained
    finding: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    live: bool = False
    number: int = 1


_ENDLESS = {"epochs": 100_000}

APPLICATIONS = (
    Application(
        name="rate-low",
        run=Trained(data=data.digits, plan={"epochs": 10, "learning_rate": 1e-5}),
        finding="learning-rate-low",
    ),
    Application(
        name="rate-low, live",
        run=Trained(data=data.digits, plan={**_ENDLESS, "learning_rate": 1e-6}),
        finding="learning-rate-low",
        live=True,
    ),
    Application(
        name="rate-high, live",
        run=Trained(data=data.digits, plan={**_ENDLESS, "learning_rate": 0.3}),
        finding="learning-rate-high",
        live=True,
    ),
    Application(
        name="rate-high-numbers",
        run=Trained(
            data=data.numbers,
            model="own:number",
            plan={"epochs": 20, "optimizer": "sgd", "learning_rate": 2.0, "on_nan": "continue"},
        ),
        finding="not-a-number",
    ),
    Application(
        name="huge-batch",
        run=Trained(data=data.digits, plan={"epochs": 8, "batch_size": 1437}),
        finding="batch-too-large",
    ),
    Application(
        name="tiny-batch",
        run=Trained(data=data.digits, model="own:normalized", plan={"epochs": 6, "batch_size": 2}),
        finding="batch-norm-small-batch",
    ),
    Application(
        name="forgotten-shuffle",
        run=Trained(data=data.digits, changes=(data.sorted_by_class,), plan={"epochs": 12, "shuffle": "off"}),
        finding="not-shuffled",
    ),
    Application(
        name="noise-50",
        run=Trained(data=data.digits, changes=(data.noisy_labels(0.5),), plan={"epochs": 15}),
        finding="label-noise",
    ),
    Application(
        name="overfitting",
        run=Trained(data=lambda: data.table(400), model="own:large", plan={"epochs": 40}),
        finding="overfitting",
        number=2,
    ),
    Application(
        name="validation-too-often, live",
        run=Trained(plan={**_ENDLESS, "validation_every": "1 steps"}),
        finding="frequent-validation",
        live=True,
    ),
    Application(
        name="checkpoints-too-often, live",
        run=Trained(plan={**_ENDLESS, "checkpoint_every": "1 steps"}),
        finding="frequent-checkpoints",
        live=True,
    ),
    Application(
        name="float16-on-cpu",
        run=Trained(plan={"epochs": 60, "precision": "mixed_float16", "force": "on"}),
        finding="float16-on-cpu",
    ),
    Application(
        name="rate times 1000, live",
        run=Trained(data=data.digits, plan=_ENDLESS),
        changes={"learning_rate": 1.0},
        live=True,
    ),
    Application(
        name="rate times 1000", run=Trained(data=data.digits, plan={"epochs": 10}), changes={"learning_rate": 1.0}
    ),
    Application(
        name="a checkpoint each step, live",
        run=Trained(data=data.digits, plan=_ENDLESS),
        changes={"checkpoint_every": "1 steps"},
        live=True,
    ),
    Application(
        name="32 micro-batches, live",
        run=Trained(data=data.digits, plan=_ENDLESS),
        changes={"micro_batches": 32},
        live=True,
    ),
)

HEADER = ("| run | applied | before | after | unit | |", "|---|---|---|---|---|---|")


def apply_all(applications: Sequence[Application], only: Sequence[str] | None) -> str:
    """Apply to each run what is meant for it; returns a table."""
    rows = [*HEADER]
    for each in applications:
        if not only or each.name in only:
            with tempfile.TemporaryDirectory() as home:
                os.environ["ACCEL_TUI_HOME"] = home
                began = time.perf_counter()
                rows.append(_row(each, Path(home)))
            print(f"{each.name}: {time.perf_counter() - began:.0f} s: {rows[-1]}", file=sys.stderr)
    return "\n".join(rows)


def _row(each: Application, home: Path) -> str:
    directory = prepare_run(each.run.plan_of(home))
    with _ended_after(home):
        process = hand_over(directory, None)
        if each.live:
            _wait_for(each, directory)
        else:
            process.wait(PATIENCE)
        what = f"{each.finding or 'a change that harms'}: `{_options(each, directory)}`"
        try:
            told = _told(_applied(each, directory))
        except AccelError as error:
            told = f"| | | {error}"
        return f"| {each.name} | {what} | {told} |"


def _applied(each: Application, directory: Path) -> SettledCure:
    if each.finding:
        return apply_finding(directory, each.finding, number=each.number)
    return apply_and_settle(directory, each.changes)


def _told(settled: SettledCure) -> str:
    """Before, after, unit, and what came of it."""
    outcome = settled.outcome
    figures = f"{outcome.before:.4g} | {outcome.after:.4g} | {outcome.unit}" if outcome else "| |"
    said = "taken back" if settled.taken_back else "gained" if outcome and outcome.is_better else "stays"
    return f"{figures} | {said}" + ("" if outcome else f": {settled.text.rpartition('; ')[2]}")


def _options(each: Application, directory: Path) -> str:
    if each.changes:
        return options_text(each.changes)
    cures = [
        cure for finding in advise(read_recorded(directory)) if finding.id == each.finding for cure in finding.cures
    ]
    changed = [cure.changes for cure in cures if cure.changes]
    return options_text(changed[each.number - 1]) if len(changed) >= each.number else ""


def _wait_for(each: Application, directory: Path) -> None:
    """Wait until a live run has the finding, or some steps; and a rate, where that is compared."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        recorded = read_recorded(directory)
        found = {finding.id for finding in advise(recorded)}
        is_ready = each.finding in found if each.finding else recorded.steps > LEAST_STEPS
        if is_ready and ("learning-rate" in each.finding or _has_settled(directory)):
            return
        time.sleep(0.5)


def _has_settled(directory: Path) -> bool:
    """Whether a run has trained for 20 seconds, so that its rate is known."""
    with closing(RunReader(directory, steps=False)) as reader:
        ends = reader.chunk_ends()
    return len(ends) > 1 and ends[-1][0] - ends[0][0] > 20


@contextmanager
def _ended_after(home: Path) -> Iterator[None]:
    """Stop all runs of a directory after a block."""
    try:
        yield
    finally:
        for directory in (home / "runs").iterdir():
            with suppress(AccelError):
                run_change.stop(directory, now=True)
