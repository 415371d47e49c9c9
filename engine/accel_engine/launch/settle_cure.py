"""Compares a run before and after a cure, and takes back one that makes it clearly worse."""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine.errors import AccelError, RunError
from accel_engine.events import ModelBuilt, PlanChanged, RunStarted
from accel_engine.launch import run_change
from accel_engine.launch.apply_cure import AppliedCure, Way, apply, described
from accel_engine.launch.cure_kinds import Quantity, quantity_of
from accel_engine.launch.cure_outcome import BLOCKS, LEAST_WINDOWS, Outcome, compare_speed, window_rates
from accel_engine.launch.learning_outcome import compare_continued, compare_runs, has_results, last_step
from accel_engine.launch.live_changes import INTERVALS
from accel_engine.launch.paused_run import read_run
from accel_engine.launch.run_change import Launch
from accel_engine.launch.trial_process import TrialCancelledError
from accel_engine.run import RunReader, Status
from accel_engine.run.run_paths import latest_checkpoint

POLL_SECONDS = 0.5

MOST_SECONDS = 60.0
"""How long the run is watched, if its steps do not tell before."""

SETTLING_CHUNKS = 4
"""Chunks after the change that do not count: in them, graphs are compiled and the length of chunks adapts."""

BEFORE_SECONDS = 20.0
"""Seconds of training that are compared, at most."""


@dataclass(frozen=True, slots=True)
class SettledCure:
    """What came of a cure.

    Attributes:
        outcome: How the run compares; ``None`` if there was too little to compare.
        taken_back: Whether the cure was taken back.
        text: In words.
        process: The engine's process, if a new one was started.
    """

    outcome: Outcome | None
    taken_back: bool
    text: str
    process: Any = None


def settle_cure(
    cure: AppliedCure,
    on_progress: Callable[[str], object] = lambda _: None,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    launch: Launch = run_change.launch,
) -> SettledCure:
    """Wait until a run has taken enough steps with a cure, compare, and take it back if the run is clearly worse.

    Args:
        cure: The cure.
        on_progress: Called now and then with what it does, in words.
        should_stop: Whether to give up watching; the cure stays.
        launch: Gives a run to an engine; by default to a new process.

    Raises:
        AccelError: The run cannot be read, or the cure cannot be taken back; or it was cancelled.
    """
    began = time.monotonic()
    quantity = _quantity(cure)
    if not _has_before(cure, quantity):
        return SettledCure(None, taken_back=False, text="the cure stays: there are too few steps before it to compare")
    while True:
        info = read_run(cure.directory)
        if info.status is Status.FAILED:
            return _take_back(cure, None, f"run {info.id} failed with it", launch)
        outcome = _compare(cure, quantity)
        is_told = outcome is not None and not outcome.may_be_worse
        if is_told or not info.status.live or time.monotonic() - began > MOST_SECONDS:
            break
        if should_stop():
            raise TrialCancelledError
        on_progress(f"comparing run {info.id} before and after the change")
        time.sleep(POLL_SECONDS)
    if outcome is None:
        return SettledCure(None, taken_back=False, text="the cure stays: there are too few steps to compare")
    if outcome.is_worse:
        return _take_back(cure, outcome, outcome.text, launch)
    return SettledCure(outcome, taken_back=False, text=f"the cure stays: {outcome.text}")


def apply_and_settle(
    directory: Path,
    changes: Mapping[str, Any],
    on_progress: Callable[[str], object] = lambda _: None,
    *,
    finding: str = "",
    quantity: Quantity | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    launch: Launch = run_change.launch,
) -> SettledCure:
    """Apply a cure, and take it back if the run is clearly worse with it; see :func:`apply` and :func:`settle_cure`.

    Args:
        directory: The run's directory.
        changes: Fields of the plan, with their new values.
        on_progress: Called now and then with what it does, in words.
        finding: Id of the finding, which is recorded with the change.
        quantity: What the cure is for; by default it follows from the changed fields.
        should_stop: Whether to give up watching; the cure stays.
        launch: Gives a run to an engine; by default to a new process.

    Raises:
        AccelError: See :func:`apply` and :func:`settle_cure`.
    """
    cure = replace(apply(directory, changes, finding=finding, launch=launch), quantity=quantity)
    on_progress(cure.text)
    settled = settle_cure(cure, on_progress, should_stop=should_stop, launch=launch)
    return replace(settled, text=f"{cure.text}; {settled.text}", process=settled.process or cure.process)


def _quantity(cure: AppliedCure) -> Quantity:
    """What is compared: intervals of validations and checkpoints, and all that saves memory, change the speed."""
    if any(name in INTERVALS for name in cure.changes):
        return Quantity.SPEED
    quantity = cure.quantity
    if quantity is None:
        with suppress(RunError):
            quantity = quantity_of(cure.changes, on_cpu=True)
    return Quantity.LEARNING if quantity is Quantity.LEARNING else Quantity.SPEED


def _has_before(cure: AppliedCure, quantity: Quantity) -> bool:
    """Whether there are enough steps before the change to compare with."""
    if quantity is Quantity.LEARNING:
        return has_results(cure.source) if cure.way is Way.NEW_RUN else cure.step >= 2 * BLOCKS
    return len(_rates_before(cure)) >= LEAST_WINDOWS


def _compare(cure: AppliedCure, quantity: Quantity) -> Outcome | None:
    if quantity is Quantity.LEARNING:
        if cure.way is Way.NEW_RUN:
            return compare_runs(cure.source, cure.directory, cure.changes)
        return compare_continued(cure.directory, cure.step, cure.changes)
    return compare_speed(_rates_before(cure), _rates(cure.directory, cure.step, math.inf))


def _rates_before(cure: AppliedCure) -> list[float]:
    """Examples a second of the last seconds before the change, since the engine or a change before it."""
    is_new = cure.way is Way.NEW_RUN
    last = last_step(cure.source) if is_new else cure.step
    with closing(RunReader(cure.source, steps=False)) as reader:
        events = [event for _, event in reader.events(0, RunStarted, PlanChanged)]
    starts = [event.first_step for event in events if isinstance(event, RunStarted)]
    starts += [event.step for event in events if isinstance(event, PlanChanged)]
    return _rates(cure.source, max((step for step in starts if step < last), default=0), last)


def _rates(directory: Path, first: int, last: float) -> list[float]:
    """Examples a second in windows of a run, from one step to another one."""
    with closing(RunReader(directory, steps=False)) as reader:
        ends = reader.chunk_ends()
        built = [event for _, event in reader.events(0, ModelBuilt) if isinstance(event, ModelBuilt)]
    batch = (built[-1].global_batch if built else 1) or 1
    inside = [(at, step) for at, step in ends if first < step <= last][SETTLING_CHUNKS:]
    since = inside[-1][0] - BEFORE_SECONDS if inside else 0.0
    return window_rates([(at, step) for at, step in inside if at >= since], batch)


def _take_back(cure: AppliedCure, outcome: Outcome | None, why: str, launch: Launch) -> SettledCure:
    """Undo a cure in the way in which it was applied."""
    reason = f"taken back: {why}"
    process = None
    if cure.way is Way.NEW_RUN:
        run_change.stop(cure.directory, now=True)
        done = f"the new run {cure.directory.name} was stopped"
        if cure.was_live:
            with suppress(AccelError):
                process = run_change.continue_changed(cure.source, {}, {}, reason, launch)
                done += f", and run {cure.source.name} continues"
    elif cure.way is Way.COMMAND and (_quantity(cure) is Quantity.SPEED or not cure.step):
        process = apply(cure.directory, cure.before, finding=reason, launch=launch).process
        done = f"run {cure.directory.name} has {described(cure.before)} again"
    else:
        is_learning = _quantity(cure) is Quantity.LEARNING
        run_change.stop(cure.directory, now=is_learning)
        step = run_change.return_to(cure.directory, cure.step) if is_learning else latest_checkpoint(cure.directory)
        process = run_change.continue_changed(cure.directory, cure.before, cure.changes, reason, launch)
        done = f"run {cure.directory.name} continues from step {step:,} with {described(cure.before)}"
    return SettledCure(outcome, taken_back=True, text=f"the cure was taken back, as {why}; {done}", process=process)
