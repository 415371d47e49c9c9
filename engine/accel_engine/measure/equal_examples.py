"""Compares how two plans learn that race: as many examples from the same start, in several orders of them."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from accel_engine.errors import RunError
from accel_engine.measure.plan_trials import PlanTrial, PlanTrials
from accel_engine.measure.trial_statistics import PlanComparison, compare_losses, in_turn
from accel_engine.plan.monitor import is_better_lower

ORDERS = 3
"""Orders of the examples in which both plans train."""

LEAST_STEPS = 10
"""Steps of each training, also if they take longer than they should."""

SHARE = 0.7
"""Share of the time for the steps; the rest is for validations."""

LAST_PART = 4
"""Without validation, the loss is the mean over the last of this many parts of the steps."""


@dataclass(frozen=True, slots=True)
class Learned:
    """How two plans learned."""

    metric: str
    """What was compared, such as ``validation loss``."""
    before: float
    """Its mean over the orders with the first plan."""
    after: float
    """The same with the second one."""
    comparison: PlanComparison
    """The difference, and whether it may be chance."""
    steps: int
    """Steps of each training with the first plan."""


def compare_learning(
    trials: PlanTrials,
    seconds: float,
    on_progress: Callable[[float, float], object],
    *,
    by_loss: bool = True,
    preferred: str = "accuracy",
) -> Learned:
    """Let two compiled plans train in the same orders, one after the other in turns.

    Their losses at validation are compared; the training losses where there is no validation data, or too little time.

    Args:
        trials: The two plans.
        seconds: How long it may take; more if :data:`LEAST_STEPS` steps do.
        on_progress: Called with the number of trainings done, and of all.
        by_loss: Whether both plans have the same loss, so that its values can be compared.
        preferred: Part of the name of the metric to compare if not, where both plans have one.

    Raises:
        RunError: No metric of both plans can be compared.
        TrialFailedError: A plan cannot be tried any further.
        TrialCancelledError: The comparison was cancelled.
    """
    pair = trials.trials
    first, second = (trial.ready for trial in pair)
    orders = ORDERS if first.has_orders or second.has_orders else 1
    rates = [trial.process.take_for(0.5).examples_per_second for trial in pair]
    wanted = SHARE * seconds * min(rates) / (2 * orders) / first.global_batch
    steps = max(LEAST_STEPS, min(int(wanted), _steps_left(pair[0]) or int(wanted)))
    validates = not by_loss or _has_time_to_validate(pair[0], seconds / (2 * orders))
    examples = steps * first.global_batch
    results: list[list[dict[str, float]]] = [[], []]
    done = 0
    for number in range(orders):
        for index in in_turn((0, 1), number):
            on_progress(done, 2 * orders)
            done += 1
            if results[index] and not pair[index].ready.has_orders:  # the examples come as before
                results[index].append(results[index][0])
                continue
            count = max(1, round(examples / pair[index].ready.global_batch))
            seed = pair[0].start.plan.seed + number
            results[index].append(_train(pair[index], seed, count, validates=validates))
    on_progress(done, done)
    metric = _metric(results, by_loss=by_loss, preferred=preferred)
    before, after = ([each[metric] for each in found] for found in results)
    comparison = compare_losses(before, after, lower_is_better=is_better_lower(metric, None) is not False)
    return Learned(metric.replace("_", " "), _mean(before), _mean(after), comparison, steps)


def _has_time_to_validate(trial: PlanTrial, most: float) -> bool:
    """Whether a validation takes fewer seconds than the most; the first one, which traces it, may take longer."""
    return any(trial.process.validate()[1] < most for _ in range(2))


def _steps_left(trial: PlanTrial) -> int:
    """Steps from the start to the end of the plan: no trial trains longer than the run would; an epoch at least.

    0 if they are unknown.
    """
    per_epoch, start = trial.ready.steps_per_epoch, trial.start
    return max(per_epoch, start.plan.epochs * per_epoch - start.step)


def _train(trial: PlanTrial, seed: int, steps: int, *, validates: bool) -> dict[str, float]:
    """The mean loss of the last steps of a training from the start, and the metrics of a validation after it."""
    trial.process.restore(seed)
    losses = trial.process.take(steps).losses
    metrics = trial.process.validate()[0] if validates else {}
    last = losses[-max(1, len(losses) // LAST_PART) :]
    return {"loss": _mean(last)} | {f"validation_{name}": value for name, value in metrics.items()}


def _metric(results: list[list[dict[str, float]]], *, by_loss: bool, preferred: str) -> str:
    """The metric to compare: the validation's loss; if losses are not the same function, another metric."""
    common = set[str].intersection(*(set(each) for found in results for each in found))
    if by_loss:
        return "validation_loss" if "validation_loss" in common else "loss"
    others = sorted(name for name in common if not name.endswith("loss") and is_better_lower(name, None) is not None)
    if not others:
        raise RunError(
            "both plans have other losses, and no other metric that can be compared: give --metrics, such as "
            "accuracy or mean_absolute_error"
        )
    return next((name for name in others if preferred in name), others[0])


def _mean(values: list[float] | tuple[float, ...]) -> float:
    return statistics.fmean(values) if all(map(math.isfinite, values)) else math.nan
