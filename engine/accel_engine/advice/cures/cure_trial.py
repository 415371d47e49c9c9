"""Tries a cure: a race of a run's plan with and without the changes, from the same start, for some seconds."""

import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine.advice.cures.cure_task import CureTask, Quantity, cure_task
from accel_engine.errors import RunError
from accel_engine.events import Event
from accel_engine.measure.equal_examples import Learned, compare_learning
from accel_engine.measure.plan_trials import PlanTrial, PlanTrials
from accel_engine.measure.trial_room import check_room_on, place_trial
from accel_engine.measure.trial_statistics import LESS, PlanComparison, PlanVerdict
from accel_engine.process.run_change import paused
from accel_engine.run import RunInfo, RunReader
from accel_engine.run.reading.reader import drop_discarded

PREPARATION_SECONDS = 10.0
"""About how long it takes until the steps of a small model are compiled, for the progress."""

LONGEST_PAUSE = 5.0
"""How much longer than planned a trial may take, as a factor, until the engine resumes a paused run by itself."""


@dataclass(frozen=True, slots=True)
class CureProgress:
    """How far a trial is.

    Attributes:
        done: Seconds done.
        of: Seconds in all, about.
        detail: What it does now.
    """

    done: float
    of: float
    detail: str


@dataclass(frozen=True, slots=True)
class CureResult:
    """What a cure gains.

    Attributes:
        before: The measured value without the changes; infinite where memory ran out.
        after: The same with them; infinite where memory ran out.
        unit: Of both, such as ``examples/s``, ``GiB`` or ``validation loss``.
        low: The lower end of the 95 percent interval of the value with the changes, if that without is ``before``;
            ``-inf`` if there were too few rounds to tell.
        high: The upper end; ``inf`` if there were too few rounds to tell.
        better: Whether the changes are better, and that is no chance as far as the rounds tell.
        text: All of it in words, with how it was measured.
    """

    before: float
    after: float
    unit: str
    low: float
    high: float
    better: bool
    text: str


def try_cure(
    directory: Path,
    changes: Mapping[str, Any],
    on_progress: Callable[[CureProgress], None],
    *,
    seconds: float = 10.0,
    should_stop: Callable[[], bool] = lambda: False,
    quantity: Quantity | None = None,
) -> CureResult:
    """Train with and without changes of a run's plan, and compare. Blocks; nothing is written to the run.

    A live run is paused while both train, not while they are compiled, and resumed in any case.

    Args:
        directory: The run's directory.
        changes: Fields of the plan, with their new values.
        on_progress: Called now and then.
        seconds: How long both train, about.
        should_stop: Whether to give up; asked all the time.
        quantity: What is compared; by default it follows from the changed fields.

    Raises:
        AccelError: The changes cannot be tried, and why; or it was cancelled.
    """
    whole = PREPARATION_SECONDS + seconds
    on_progress(CureProgress(0.0, whole, "starting engine processes, which compile the steps"))
    info, events = _recorded(directory)
    task = cure_task(info, events, changes, quantity)
    if info.status.live:
        check_room_on((place_trial(task.before.plan), place_trial(task.after.plan)))
    with PlanTrials((task.before, task.after), should_stop) as trials:
        trials.wait_ready(lambda detail: on_progress(CureProgress(PREPARATION_SECONDS / 2, whole, detail)))
        if task.quantity is not Quantity.MEMORY:
            _check_compiled(*trials.trials)
        with paused(directory, LONGEST_PAUSE * whole, should_stop) as note:
            detail = "; ".join(filter(None, ("taking turns with and without the changes", note.now)))

            def measured(done: float, of: float) -> None:
                share = done / of if of else 1.0
                on_progress(CureProgress(PREPARATION_SECONDS + share * seconds, whole, detail))

            result = _race(trials, task, seconds, measured)
    return replace(result, text="; ".join(filter(None, (result.text, note.after))))


def _race(trials: PlanTrials, task: CureTask, seconds: float, measured: Callable[[float, float], object]) -> CureResult:
    """Let two compiled plans train, and compare what the changes are for."""
    if task.quantity is Quantity.LEARNING:
        preferred = task.balanced_metric or "accuracy"
        found = compare_learning(trials, seconds, measured, by_loss=task.by_loss, preferred=preferred)
        return learning_result(found, task)
    trials.take_turns(seconds, measured)
    without, changed = trials.trials
    result = memory_result if task.quantity is Quantity.MEMORY else speed_result
    return result(without, changed, task)


def _recorded(directory: Path) -> tuple[RunInfo, list[Event]]:
    with closing(RunReader(directory, steps=False)) as reader:
        return reader.info(), drop_discarded(reader.poll().events)


def _check_compiled(without: PlanTrial, changed: PlanTrial) -> None:
    """Check that both plans can be tried.

    Raises:
        RunError: One cannot; which and why.
    """
    for trial, which in ((without, "without"), (changed, "with")):
        if trial.problem:
            raise RunError(f"the plan {which} the changes cannot be tried: {trial.problem}") from trial.problem


def speed_result(without: PlanTrial, changed: PlanTrial, task: CureTask) -> CureResult:
    """The examples a second of two plans that took turns.

    Raises:
        RunError: A plan could not be tried to the end.
    """
    _check_compiled(without, changed)
    found, before = changed.compared_with(without), without.examples_per_second
    compiled = f"compiled in {without.ready.compile_seconds:.1f} and {changed.ready.compile_seconds:.1f} s"
    text = (
        f"{before * found.value:,.0f} examples/s with the changes, {before:,.0f} without: {_factor(found)}. "
        f"{found.rounds} rounds in turns, {task.start}; {compiled}"
    )
    is_better = found.verdict is PlanVerdict.BETTER
    return CureResult(
        before, before * found.value, "examples/s", before * found.low, before * found.high, is_better, text
    )


def _factor(comparison: PlanComparison) -> str:
    if not math.isfinite(comparison.low) or not math.isfinite(comparison.high):
        return "too few rounds to tell"
    words = {PlanVerdict.BETTER: "faster", PlanVerdict.WORSE: "slower"}
    verdict = words.get(comparison.verdict, "no difference that these rounds show")
    return f"{verdict}, {comparison.low:.2f} to {comparison.high:.2f} times as fast"


def memory_result(without: PlanTrial, changed: PlanTrial, task: CureTask) -> CureResult:
    """The peak memory of two plans that took turns, of which each may run out of it.

    Raises:
        AccelError: A plan could not be tried for another reason, or this system tells no memory.
    """
    for trial in (without, changed):
        if trial.problem and not trial.problem.out_of_memory:
            raise trial.problem
    before, after = (math.inf if each.problem else _gibibytes(each) for each in (without, changed))
    better = after < LESS * before or (math.isfinite(after) and not math.isfinite(before))
    shown = [f"{value:.2f} GiB" if math.isfinite(value) else "out of memory" for value in (after, before)]
    text = f"peak memory: {shown[0]} with the changes, {shown[1]} without; {task.start}"
    if without.turns and changed.turns and not (without.problem or changed.problem):
        text += f"; {_factor(changed.compared_with(without))}"
    return CureResult(before, after, "GiB", after, after, better, text)


def _gibibytes(trial: PlanTrial) -> float:
    if trial.memory is None:
        raise RunError("this system does not tell how much memory a process takes, so a trial cannot compare it")
    return trial.memory / 2**30


def learning_result(learned: Learned, task: CureTask) -> CureResult:
    """What two plans learned from the same number of examples."""
    found = learned.comparison
    words = {PlanVerdict.BETTER: "better", PlanVerdict.WORSE: "worse"}
    verdict = words.get(found.verdict, "no difference that these orders show")
    orders = f"{found.rounds} orders of the examples" if found.rounds > 1 else "one order of the examples"
    text = (
        f"{learned.metric} {learned.after:.4g} with the changes, {learned.before:.4g} without: {verdict}. "
        f"After {learned.steps:,} steps {task.start}, in {orders}"
    )
    low, high = learned.before + found.low, learned.before + found.high
    return CureResult(
        learned.before, learned.after, learned.metric, low, high, found.verdict is PlanVerdict.BETTER, text
    )
