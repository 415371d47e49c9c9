"""Tries a cure: a race of a run's plan with and without the changes, from the same start, for some seconds."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accel_engine.advice.cures.cure_task import CureTask, Quantity, cure_task
from accel_engine.errors import RunError
from accel_engine.measure.equal_examples import Learned, compare_learning
from accel_engine.measure.plan_trials import PlanTrial, PlanTrials
from accel_engine.measure.trial_memory import check_trial_memory, place_trial
from accel_engine.measure.trial_statistics import LESS, PlanVerdict
from accel_engine.process.run_change import paused
from accel_engine.race.comparison import with_rates
from accel_engine.race.configuration import Configuration, ConfigurationResult, ConfigurationState, LearnedValue
from accel_engine.race.configuration_trial import trial_result
from accel_engine.race.configurations import REFERENCE
from accel_engine.run import read_run
from accel_engine.run.history.history import read_history
from accel_engine.words import numbers

CURE = "the cure"
"""The title of the plan with the changes."""

PREPARATION_SECONDS = 10.0
"""About how long it takes until the steps of a small model are compiled, for the progress."""

LONGEST_PAUSE = 5.0
"""How much longer than planned a trial may take, as a factor, until the engine resumes a paused run by itself."""


@dataclass(frozen=True, slots=True)
class CureProgress:
    """How far a trial is."""

    done: float
    """Seconds done."""
    of: float
    """Seconds in all, about."""
    detail: str
    """The present phase, in words."""


@dataclass(frozen=True, slots=True)
class CureRace:
    """The result of a cure's trial."""

    results: tuple[ConfigurationResult, ConfigurationResult]
    """Results of the plan without and with the changes."""
    quantity: Quantity
    """The quantity that is compared."""
    is_better: bool
    """Whether the changes are better, by more than chance in the rounds."""
    how: str
    """How it was measured, in words."""


def try_cure(
    directory: Path,
    changes: Mapping[str, Any],
    on_progress: Callable[[CureProgress], None],
    *,
    seconds: float = 10.0,
    should_stop: Callable[[], bool] = lambda: False,
    quantity: Quantity | None = None,
) -> CureRace:
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
        AccelError: The changes cannot be tried, or the trial was cancelled.
        OSError: No process can be started.
    """
    whole = PREPARATION_SECONDS + seconds
    on_progress(CureProgress(0.0, whole, "starting engine processes, which compile the steps"))
    info = read_run(directory)
    task = cure_task(info, read_history(directory), changes, quantity)
    if info.status.live:
        check_trial_memory((place_trial(task.before.plan), place_trial(task.after.plan)))
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
    return replace(result, how="; ".join(filter(None, (result.how, note.after))))


def _race(trials: PlanTrials, task: CureTask, seconds: float, measured: Callable[[float, float], object]) -> CureRace:
    """Let two compiled plans train, and compare what the changes are for."""
    if task.quantity is Quantity.LEARNING:
        preferred = task.balanced_metric or "accuracy"
        return learning_race(
            compare_learning(trials, seconds, measured, by_loss=task.by_loss, preferred=preferred), task
        )
    trials.take_turns(seconds, measured)
    without, changed = trials.trials
    return (memory_race if task.quantity is Quantity.MEMORY else speed_race)(without, changed, task)


def _check_compiled(without: PlanTrial, changed: PlanTrial) -> None:
    """Check that both plans can be tried.

    Raises:
        RunError: A plan cannot be tried; the message says which, and why.
    """
    for trial, which in ((without, "without"), (changed, "with")):
        if trial.problem:
            raise RunError(f"the plan {which} the changes cannot be tried: {trial.problem}") from trial.problem


def speed_race(without: PlanTrial, changed: PlanTrial, task: CureTask) -> CureRace:
    """The examples a second of two plans that took turns.

    Raises:
        RunError: A plan could not be tried to the end.
    """
    _check_compiled(without, changed)
    results = _in_turns(without, changed, task)
    how = f"{numbers.counted(len(results[1].ratios), 'round')} in turns, {task.start}"
    return CureRace(results, Quantity.SPEED, results[1].is_faster, how)


def memory_race(without: PlanTrial, changed: PlanTrial, task: CureTask) -> CureRace:
    """The peak memory of two plans that took turns, of which each may run out of it.

    Raises:
        AccelError: A plan could not be tried for another reason, or this system tells no memory.
    """
    for trial in (without, changed):
        if trial.problem and not trial.problem.out_of_memory:
            raise trial.problem
        if not trial.problem and trial.memory is None:
            raise RunError("this system does not tell how much memory a process takes, so a trial cannot compare it")
    before, after = (math.inf if each.problem else each.memory or 0.0 for each in (without, changed))
    is_better = after < LESS * before or (math.isfinite(after) and not math.isfinite(before))
    return CureRace(_in_turns(without, changed, task), Quantity.MEMORY, is_better, f"Both began {task.start}")


def learning_race(learned: Learned, task: CureTask) -> CureRace:
    """Compare the metrics of two plans after the same number of examples."""
    found, before = learned.comparison, learned.before
    between = (before + found.low, before + found.high) if math.isfinite(found.low) else None
    values = LearnedValue(learned.metric, before), LearnedValue(learned.metric, learned.after, between)
    without, changed = (
        ConfigurationResult(configuration, ConfigurationState.FINISHED, learned=value)
        for configuration, value in zip(_configurations(task), values, strict=True)
    )
    orders = f"{found.rounds} orders of the examples"
    if found.rounds == 1:
        orders = "one order of the examples, so that the difference may be chance"
    how = f"after {numbers.counted(learned.steps, 'step')} {task.start}, in {orders}"
    return CureRace((without, changed), Quantity.LEARNING, found.verdict is PlanVerdict.BETTER, how)


def _configurations(task: CureTask) -> tuple[Configuration, Configuration]:
    return Configuration(REFERENCE, task.before.plan), Configuration(CURE, task.after.plan, task.changes)


def _in_turns(
    without: PlanTrial, changed: PlanTrial, task: CureTask
) -> tuple[ConfigurationResult, ConfigurationResult]:
    """The results of two plans that took turns."""
    plan, cure = _configurations(task)
    reference, other = trial_result(plan, without), trial_result(cure, changed)
    ratios = tuple(rate / before for before, rate in zip(reference.rates, other.rates, strict=False))
    return with_rates(reference, ()), with_rates(replace(other, ratios=ratios), reference.rates)
