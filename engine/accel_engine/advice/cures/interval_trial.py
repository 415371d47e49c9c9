"""Compares how often two plans validate and save checkpoints, from what steps, a validation and a checkpoint take."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from accel_engine.errors import RunError
from accel_engine.measure.plan_trials import TURN_SECONDS, WARM_UP_SECONDS, PlanTrial
from accel_engine.measure.trial_statistics import LEAST_ROUNDS, Comparison, compare_rates
from accel_engine.plan import Plan
from accel_engine.plan.interval import MAX_CHECKPOINT_TIME_SHARE, parse_interval

PATIENCE = 6.0
"""How much longer than asked for the rounds may take, as a factor, until there are enough."""


@dataclass(frozen=True, slots=True)
class IntervalTrial:
    """How two plans compare.

    Attributes:
        before: Examples a second with the first one, with validations and checkpoints.
        comparison: The second one's rate against the first one's.
        steps_per_second: Of the steps alone; the median of the rounds, as the others.
        validation_seconds: How long a validation takes.
        checkpoint_seconds: How long a checkpoint takes.
    """

    before: float
    comparison: Comparison
    steps_per_second: float
    validation_seconds: float
    checkpoint_seconds: float


@dataclass(frozen=True, slots=True)
class Round:
    """What was measured in a round.

    Attributes:
        rate: Steps a second, without validations and checkpoints.
        validation: Seconds of a validation.
        checkpoint: Seconds of a checkpoint.
    """

    rate: float
    validation: float
    checkpoint: float


def measure_intervals(
    trial: PlanTrial, changed: Plan, seconds: float, on_progress: Callable[[float, float], object]
) -> IntervalTrial:
    """Measure steps, validations and checkpoints of a compiled plan, and compare it with one of other intervals.

    Args:
        trial: The plan.
        changed: The plan with other intervals.
        seconds: How long it may take, unless there are too few rounds.
        on_progress: Called with the seconds done, and all.

    Raises:
        RunError: The number of steps of an epoch is unknown.
        TrialFailedError: The plan cannot be tried any further.
        TrialCancelledError: It should stop.
    """
    plan, ready = trial.start.plan, trial.ready
    trial.process.take_for(WARM_UP_SECONDS)
    trial.process.validate()  # which traces it
    rounds: list[Round] = []
    began, passed = time.monotonic(), 0.0
    while not rounds or _continues(len(rounds), passed, seconds):
        on_progress(min(passed, seconds), seconds)
        rate = trial.process.take_for(TURN_SECONDS).steps_per_second
        _, validation = trial.process.validate()
        rounds.append(Round(rate, validation, trial.process.save()))
        passed = time.monotonic() - began
    rates = [[rate_with(each, measured, ready.steps_per_epoch) for measured in rounds] for each in (plan, changed)]
    return IntervalTrial(
        ready.global_batch * statistics.median(rates[0]),
        compare_rates(*rates),
        statistics.median(each.rate for each in rounds),
        statistics.median(each.validation for each in rounds),
        statistics.median(each.checkpoint for each in rounds),
    )


def _continues(rounds: int, passed: float, seconds: float) -> bool:
    """Whether there is time for another round."""
    return passed < seconds or (rounds < LEAST_ROUNDS and passed < PATIENCE * seconds)


def rate_with(plan: Plan, measured: Round, steps_per_epoch: int) -> float:
    """Steps a second of a plan, with its validations and checkpoints.

    Raises:
        RunError: The number of steps of an epoch is unknown.
    """
    per_step = 1 / measured.rate
    if plan.validation == "epoch":
        every = _steps_of("validation_every", plan.validation_every, measured.rate, steps_per_epoch)
        per_step += measured.validation / every
    if plan.checkpoint_every == "auto":
        every = max(_known(steps_per_epoch), measured.checkpoint * measured.rate / MAX_CHECKPOINT_TIME_SHARE)
    else:
        every = _steps_of("checkpoint_every", plan.checkpoint_every, measured.rate, steps_per_epoch)
    return 1 / (per_step + measured.checkpoint / every)


def _steps_of(field: str, text: str, rate: float, steps_per_epoch: int) -> float:
    """The steps of an interval."""
    interval = parse_interval(field, text)
    match interval.unit:
        case "steps":
            return interval.count
        case "epochs":
            return interval.count * _known(steps_per_epoch)
    return max(1, math.floor(60 * interval.count * rate))


def _known(steps_per_epoch: int) -> int:
    if not steps_per_epoch:
        raise RunError("the number of steps of an epoch is unknown, so that intervals in epochs cannot be compared")
    return steps_per_epoch
