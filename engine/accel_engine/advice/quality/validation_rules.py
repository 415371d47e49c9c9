"""When validation was best: overfitting, and steps after which it no longer improved."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from accel_engine.advice.finding import Evidence, Finding
from accel_engine.advice.quality.findings import of_loss, quality_finding, set_field
from accel_engine.advice.quality.learning import Learning, curve_noise
from accel_engine.advice.quality.regularization import overfitting_cures
from accel_engine.advice.recorded import Floats
from accel_engine.words.numbers import metric, percent, span

RISEN = 1.15
"""Validation loss over its lowest, from which a model overfits, unless its metric is as good as before."""

RISEN_ALONE = 1.4
"""The same whatever the metric does."""

ABOVE, BACK = 5.0, 1.5
"""Standard deviations of a validation loss above its best from which it has risen, and below which it is back: the
best of many is itself about 1.5 below their mean by chance."""

RECENT = 30
"""Validations that tell how noisy they are."""

WORSE_METRIC = 0.01
"""How much worse a metric from 0 to 1 is than its best, to count."""

SAVED_SECONDS = 60.0
"""Time that early stopping would have saved, from which it counts."""

SAVED_SHARE = 0.25


def overfitting(learning: Learning) -> Iterator[Finding]:
    """Validation was better before, while training has gone on to improve."""
    steps, losses = learning.validation("loss")
    if len(losses) < 4 or losses.min() <= 0 or not len(learning.loss):
        return
    best = _risen_since(losses, _metrics_are_worse(learning, len(losses)))
    if best is None:
        return
    at_best = _training_loss_at(learning, int(steps[best]))
    at_end = learning.last_loss
    if at_end > 0.95 * at_best:  # training does not improve either: it stays as it is, or diverges
        return
    first, last = int(steps[best]), int(steps[-1])
    saved = _seconds_between(learning, first)
    later = f"; the {last - first:,} steps since took {span(saved)}" if saved > SAVED_SECONDS else ""
    yield quality_finding(
        "overfitting",
        f"Overfitting since step {first:,}",
        [
            Evidence(
                f"validation loss rose from {metric(losses[best])} at step {first:,} to {metric(losses[-1])}{later}",
                "validation_loss",
                (first, last + 1),
            ),
            of_loss(
                learning,
                f"the loss of training fell from {metric(at_best)} to {metric(at_end)} meanwhile",
                (first, learning.stop),
            ),
        ],
        f"the last model is worse than the one of step {first:,}",
        overfitting_cures(learning),
        weight=min(0.8, 0.4 + (float(np.median(losses[-3:]) / losses[best]) - 1) / 2),
    )


def _risen_since(losses: Floats, is_worse: npt.NDArray[np.bool_]) -> int | None:
    """The best of validation losses from which they have risen, beyond their noise; ``None`` if they have not.

    Read as they came: they have risen once the last three are all clearly above the best, and until they are back at
    it, so that one that is higher or lower by chance does not change the answer.

    Args:
        losses: Validation losses, ``[validations]``.
        is_worse: Whether the metric that counts is worse than its best, bool ``[validations]``.
    """
    level = losses.copy()
    level[1:-1] = np.median([losses[:-2], losses[1:-1], losses[2:]], axis=0)  # a single good one may be chance
    noise, best, risen = _recent_spread(losses), 0, False
    for last in range(2, len(losses)):
        recent = losses[last - 2 : last + 1]
        if level[last - 1] < level[best]:
            best, risen = last - 1, False
        elif risen:
            risen = bool(recent.max() > level[best] + BACK * noise[last])
        elif last >= best + 2:
            after = losses[max(best + 1, last - 2) : last + 1]
            factor = RISEN if is_worse[last] else RISEN_ALONE
            is_above = np.median(after) > max(factor * level[best], level[best] + ABOVE * noise[last])
            risen = bool(is_above and after.min() > level[best] + BACK * noise[last])
    if not risen:
        return None
    around = losses[max(0, best - 1) : best + 2]  # one of the three may be a bad one by chance
    return max(0, best - 1) + int(np.argmin(around))


def _recent_spread(values: Floats) -> Floats:
    """The noise of a curve at each point, ``[n]``, from the points before: what follows does not change it."""
    return np.array([curve_noise(values[max(0, last + 1 - RECENT) : last + 1]) for last in range(len(values))])


def _metrics_are_worse(learning: Learning, count: int) -> npt.NDArray[np.bool_]:
    """Whether the metric that counts is worse at each validation than at its best before, beyond its noise.

    Args:
        learning: The run.
        count: Number of validations.

    Returns:
        bool ``[count]``; true where there is no metric beside the loss.
    """
    name, lower = next(((name, lower) for name, lower in learning.monitored()), ("loss", True))
    values = learning.validation(name)[1]
    if name == "loss" or len(values) != count:
        return np.ones(count, bool)
    signed = -values if lower else values
    best = np.maximum.accumulate(signed)
    limit = np.maximum(WORSE_METRIC * np.maximum(1.0, np.abs(best)), 2 * _recent_spread(signed))
    recent = np.array([np.median(signed[max(0, at - 1) : at + 1]) for at in range(count)])
    return best - recent > limit


def _training_loss_at(learning: Learning, step: int) -> float:
    near = learning.loss.between(max(learning.first, step - max(20, learning.stop // 20)), step + 1)
    return float(np.median(near.mean)) if len(near) else learning.first_loss


def _seconds_between(learning: Learning, step: int) -> float:
    """Seconds from the validation of a step to the last one, without those in which the run was paused or stopped."""
    times = [each.time for each in learning.validations if each.step >= step]
    return learning.recorded.seconds_worked(min(times), max(times)) if times else 0.0


def stopped_late(learning: Learning) -> Iterator[Finding]:
    """The metric that counts has not improved for long, and nothing stops the run."""
    if learning.settings.get("patience") or list(overfitting(learning)):
        return
    found = next(learning.monitored(), None)
    if found is None:
        return
    name, lower = found
    steps, values = learning.validation(name)
    if len(values) < 8:
        return
    signed = -values if lower else values
    noise = 1.5 * float(np.median(np.abs(np.diff(signed)))) + 1e-3 * float(np.abs(signed).max())
    best = int(np.argmax(signed >= signed.max() - noise))
    patience = max(3, len(values) // 10)
    stopped = min(best + patience, len(values) - 1)
    saved, whole = _seconds_between(learning, int(steps[stopped])), _seconds_between(learning, int(steps[0]))
    if saved < SAVED_SECONDS or saved < SAVED_SHARE * whole:
        return
    yield quality_finding(
        "stopped-late",
        f"Early stopping would have saved {span(saved)}",
        [
            Evidence(
                f"validation {name} was {metric(values[best])} at step "
                f"{int(steps[best]):,}, and is {metric(values[-1])}",
                f"validation_{name}",
                (int(steps[best]), int(steps[-1]) + 1),
            )
        ],
        f"{percent(saved / max(whole, 1e-9), 0)} of the time taught nothing that validation shows",
        [
            set_field(
                f"Stop early, and save the best weights: --patience {patience} --restore-best on",
                f"callbacks=[EarlyStopping(patience={patience}, restore_best_weights=True)]",
                span(saved),
                f"the times of the validations after step {int(steps[stopped]):,}",
                patience=patience,
                restore_best="on",
            ),
            set_field("Or lower the rate during training: --schedule cosine", "CosineDecay", schedule="cosine"),
        ],
        weight=0.3 * saved / max(whole, 1e-9) + 0.1,
    )
