"""Compares a run before and after a cure, and takes back one that makes it clearly worse."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine.advice.cures.apply_cure import AppliedCure, Method, apply
from accel_engine.advice.cures.cure_comparison import WATCHED_STEPS, CureComparison
from accel_engine.advice.cures.cure_kinds import Quantity
from accel_engine.advice.cures.cure_outcome import Outcome
from accel_engine.errors import AccelError
from accel_engine.events import RunEnded
from accel_engine.measure.trial_process import TrialCancelledError
from accel_engine.plan.changed_plan import options_text
from accel_engine.process import run_change
from accel_engine.process.paused_run import read_run
from accel_engine.process.run_change import Launch
from accel_engine.run import RunInfo, RunReader, Status, request
from accel_engine.run.directory.run_paths import latest_checkpoint

POLL_SECONDS = 0.5

MOST_SECONDS = 60.0
"""How long a run is watched from its first step with a cure, if its steps do not decide before."""

SLOWER_STEPS = 3.0
"""How much longer than expected the steps may take that decide, as a factor."""


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
    comparison = CureComparison(cure)
    if not comparison.has_before:
        return SettledCure(None, taken_back=False, text="the cure stays: there are too few steps before it to compare")
    end, info = _End(comparison.seconds_needed()), read_run(cure.directory)
    while info.status.live:
        outcome = comparison.compare()
        is_decided = outcome is not None and not outcome.may_be_worse
        if is_decided or end.is_over(comparison.steps, info.status, time.monotonic()):
            break
        if cure.judged_by is None and comparison.steps >= WATCHED_STEPS:
            break
        if should_stop():
            raise TrialCancelledError
        on_progress(_progress_text(cure, info))
        time.sleep(POLL_SECONDS)
        info = read_run(cure.directory)
    if info.status is Status.FAILED:
        return _after_failure(cure, info, launch)
    return _decide(cure, info, comparison, launch)


class _End:
    """When to give up comparing: some time after the first step with the cure, without pauses.

    Args:
        needed: Seconds that the steps take which are compared, about.
    """

    def __init__(self, needed: float) -> None:
        self._most = max(MOST_SECONDS, SLOWER_STEPS * needed)
        self._trained = 0.0
        self._last: float | None = None

    def is_over(self, steps: int, status: Status, now: float) -> bool:
        """Whether the time is over.

        Args:
            steps: Steps taken with the cure.
            status: The run's status.
            now: Seconds of any clock.
        """
        if self._last is not None and steps and status is Status.RUNNING:
            self._trained += now - self._last
        self._last = now
        return self._trained > self._most


def _progress_text(cure: AppliedCure, info: RunInfo) -> str:
    if cure.judged_by is None:
        return f"watching whether run {info.id} trains with the change"
    return f"comparing run {info.id} before and after the change"


def _after_failure(cure: AppliedCure, info: RunInfo, launch: Launch) -> SettledCure:
    """Take a cure back with which a run failed, unless it had failed before, too: it would fail again."""
    if cure.had_failed:
        return SettledCure(None, taken_back=False, text=f"run {info.id} failed with it, too: {_reason(info.directory)}")
    return _take_back(cure, None, f"run {info.id} failed with it", launch)


def _reason(directory: Path) -> str:
    """Why a run ended."""
    with closing(RunReader(directory, steps=False)) as reader:
        ends = [event for _, event in reader.events(0, RunEnded) if isinstance(event, RunEnded)]
    return ends[-1].reason if ends and ends[-1].reason else "the reason is unknown"


def _decide(cure: AppliedCure, info: RunInfo, comparison: CureComparison, launch: Launch) -> SettledCure:
    """Take a cure back with which a live run is clearly worse. One that somebody has stopped stays stopped."""
    outcome = comparison.compare()
    ended = "" if info.status.live else f"; run {info.id} is {info.status}"
    if outcome is None:
        few = cure.judged_by is not None or not comparison.steps
        why = "there are too few steps to compare" if few else f"run {info.id} has trained {comparison.steps:,} steps"
        return SettledCure(None, taken_back=False, text=f"the cure stays: {why}{ended}")
    if outcome.is_worse and info.status.live:
        return _take_back(cure, outcome, outcome.text, launch)
    return SettledCure(outcome, taken_back=False, text=f"the cure stays: {outcome.text}{ended}")


def apply_and_settle(
    directory: Path,
    changes: Mapping[str, Any],
    on_progress: Callable[[str], object] = lambda _: None,
    *,
    finding: str = "",
    purpose: Quantity | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    launch: Launch = run_change.launch,
) -> SettledCure:
    """Apply a cure, and take it back if the run is clearly worse with it; see :func:`apply` and :func:`settle_cure`."""
    cure = apply(directory, changes, finding=finding, purpose=purpose, launch=launch)
    on_progress(cure.text)
    settled = settle_cure(cure, on_progress, should_stop=should_stop, launch=launch)
    return replace(settled, text=f"{cure.text}; {settled.text}", process=settled.process or cure.process)


def _take_back(cure: AppliedCure, outcome: Outcome | None, why: str, launch: Launch) -> SettledCure:
    """Undo a cure in the way in which it was applied."""
    reason = f"taken back: {why}"
    if cure.method is Method.NEW_RUN:
        done, process = _back_to_source(cure, reason, launch)
    elif cure.method is Method.COMMAND and read_run(cure.directory).status.live and not _returns(cure):
        before = {**cure.before, **({"learning_rate": cure.rate} if cure.rate is not None else {})}
        process = apply(cure.directory, before, finding=reason, launch=launch).process
        done = f"run {cure.directory.name} has {options_text(before)} again"
    else:
        done, process = _continue_as_before(cure, reason, launch)
    return SettledCure(outcome, taken_back=True, text=f"the cure was taken back, as {why}; {done}", process=process)


def _returns(cure: AppliedCure) -> bool:
    """Whether a run returns to its checkpoint before the cure, as it has learned badly since."""
    return cure.judged_by is Quantity.LEARNING and bool(cure.checkpoint)


def _back_to_source(cure: AppliedCure, reason: str, launch: Launch) -> tuple[str, Any]:
    """Stop the new run, and continue the one that was stopped for it; returns what was done, and the process."""
    run_change.stop(cure.directory, now=True)
    done = f"the new run {cure.directory.name} was stopped"
    if not cure.was_live:
        return done, None
    try:
        process = run_change.continue_changed(cure.source, {}, {}, reason, launch)
    except AccelError as error:
        return f"{done}, but run {cure.source.name} cannot continue: {error}", None
    return f"{done}, and run {cure.source.name} continues", process


def _continue_as_before(cure: AppliedCure, reason: str, launch: Launch) -> tuple[str, Any]:
    """Continue a run with its former plan, from before the cure if it has learned badly since."""
    directory, returns = cure.directory, _returns(cure)
    with run_change.stopped(directory, launch, now=returns):
        step = run_change.return_to(directory, cure.checkpoint) if returns else latest_checkpoint(directory)
        process = run_change.continue_changed(directory, cure.before, cure.changes, reason, launch)
    if cure.rate is not None and step != cure.checkpoint:  # a later checkpoint has the rate of the cure
        request(directory, "learning_rate", cure.rate, reason=reason)
    return f"run {directory.name} continues from step {step:,} with {options_text(cure.before)}", process
