"""What trials of cures have measured, in figures and in words."""

import math
from dataclasses import dataclass

from accel_engine.advice.cures.cure_kinds import Quantity
from accel_engine.advice.cures.cure_task import CureTask
from accel_engine.advice.cures.interval_trial import IntervalTrial
from accel_engine.advice.cures.learning_trial import LearningTrial
from accel_engine.errors import RunError
from accel_engine.measure.plan_trials import PlanTrial
from accel_engine.measure.trial_statistics import Comparison, Verdict

LESS_MEMORY = 0.97
"""A ratio of peaks from which memory is saved; two processes of one plan differed by less than a percent."""


@dataclass(frozen=True, slots=True)
class CureResult:
    """What a cure gains.

    Attributes:
        before: The measured value without the changes; infinite where memory ran out.
        after: The same with them; infinite where memory ran out.
        unit: Of both, such as ``examples/s``, ``GB`` or ``validation loss``.
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


def step_result(without: PlanTrial, changed: PlanTrial, task: CureTask) -> CureResult:
    """The result of steps that took turns."""
    if task.quantity is Quantity.MEMORY:
        return _memory_result(without, changed, task)
    check_compiled(without, changed)
    comparison = changed.compared_with(without)
    before = without.examples_per_second
    after = before * comparison.value
    compiled = f"compiled in {without.ready.compile_seconds:.1f} and {changed.ready.compile_seconds:.1f} s"
    text = (
        f"{after:,.0f} examples/s with the changes, {before:,.0f} without: {_factor(comparison)}. "
        f"{comparison.rounds} rounds in turns, {task.start}; {compiled}"
    )
    return CureResult(
        before,
        after,
        "examples/s",
        before * comparison.low,
        before * comparison.high,
        comparison.verdict is Verdict.BETTER,
        text,
    )


def check_compiled(without: PlanTrial, changed: PlanTrial) -> None:
    """Check that both plans can be tried.

    Raises:
        RunError: One cannot; which and why.
    """
    for trial, which in ((without, "without"), (changed, "with")):
        if trial.problem:
            raise RunError(f"the plan {which} the changes cannot be tried: {trial.problem}") from trial.problem


def _factor(comparison: Comparison) -> str:
    interval = f"{comparison.low:.2f} to {comparison.high:.2f} times as fast"
    if not math.isfinite(comparison.low) or not math.isfinite(comparison.high):
        return "too few rounds to tell"
    match comparison.verdict:
        case Verdict.BETTER:
            return f"faster, {interval}"
        case Verdict.WORSE:
            return f"slower, {interval}"
    return f"no difference that these rounds show, {interval}"


def _memory_result(without: PlanTrial, changed: PlanTrial, task: CureTask) -> CureResult:
    """The result of a trial for memory, where running out of it is a result as well."""
    for trial in (without, changed):
        if trial.problem and not trial.problem.out_of_memory:
            raise trial.problem
    before, after = (math.inf if each.problem else _gigabytes(each) for each in (without, changed))
    better = after < LESS_MEMORY * before or (math.isfinite(after) and not math.isfinite(before))
    shown = [f"{value:.2f} GB" if math.isfinite(value) else "out of memory" for value in (after, before)]
    text = f"peak memory: {shown[0]} with the changes, {shown[1]} without; {task.start}"
    if without.turns and changed.turns and not (without.problem or changed.problem):
        text += f"; {_factor(changed.compared_with(without))}"
    return CureResult(before, after, "GB", after, after, better, text)


def _gigabytes(trial: PlanTrial) -> float:
    if trial.memory is None:
        raise RunError("this system does not tell how much memory a process takes, so a trial cannot compare it")
    return trial.memory / 1e9


def interval_result(found: IntervalTrial) -> CureResult:
    """The result of a trial of other intervals."""
    comparison, before = found.comparison, found.before
    text = (
        f"{before * comparison.value:,.0f} examples/s with the changes, {before:,.0f} without: {_factor(comparison)}. "
        f"Computed from {comparison.rounds} rounds: {found.steps_per_second:,.4g} steps/s, a validation in "
        f"{found.validation_seconds:.2g} s, a checkpoint in {found.checkpoint_seconds:.2g} s"
    )
    ends = before * comparison.low, before * comparison.high
    is_better = comparison.verdict is Verdict.BETTER
    return CureResult(before, before * comparison.value, "examples/s", *ends, is_better, text)


def learning_result(learned: LearningTrial, task: CureTask) -> CureResult:
    """The result of a trial of learning."""
    comparison = learned.comparison
    words = {
        Verdict.BETTER: "better",
        Verdict.WORSE: "worse",
        Verdict.NO_DIFFERENCE: "no difference that these orders show",
    }[comparison.verdict]
    orders = f"{comparison.rounds} orders of the examples" if comparison.rounds > 1 else "one order of the examples"
    text = (
        f"{learned.metric} {learned.after:.4g} with the changes, {learned.before:.4g} without: {words}. "
        f"After {learned.steps:,} steps {task.start}, in {orders}"
    )
    low, high = learned.before + comparison.low, learned.before + comparison.high
    return CureResult(
        learned.before, learned.after, learned.metric, low, high, comparison.verdict is Verdict.BETTER, text
    )
