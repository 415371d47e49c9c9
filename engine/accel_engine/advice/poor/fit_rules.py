"""How training compares with validation: overfitting, underfitting, too few examples, imbalance and wrong labels."""

import math
from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Evidence, Finding
from accel_engine.advice.poor.findings import of_loss, poor, set_field, words
from accel_engine.advice.poor.learning import (
    Learning,
    accuracy_name,
    classes_of,
    monitored,
    regression_of,
    spread,
    start_and_end,
)
from accel_engine.advice.poor.regularization import overfitting_cures
from accel_engine.advice.poor.settled import accuracy_rises, is_settled

RISEN = 1.15
"""Validation loss over its lowest, from which a model overfits, unless its metric is as good as before."""

RISEN_ALONE = 1.4
"""The same whatever the metric does."""

WORSE_METRIC = 0.01
"""How much worse a metric from 0 to 1 is than its best, to count."""

FEW_PER_CLASS = 20
"""Training examples of a class below which a model knows too little of it."""

FEW = 200
"""The same where there are no classes."""

GAP = 0.1
"""Accuracy of training minus that of validation, from which more examples would help."""

UNDERFIT = 0.15
"""Accuracy of nearest neighbours minus that of training, from which the model is too small or trained badly."""

SAVED_SECONDS = 60.0
"""Time that early stopping would have saved, from which it counts."""

SAVED_SHARE = 0.25


def overfitting(learning: Learning) -> Iterator[Finding]:
    """Validation was better before, while training has gone on to improve."""
    steps, losses = learning.validation("loss")
    if len(losses) < 4 or losses.min() <= 0 or not len(learning.loss):
        return
    level = losses.copy()
    level[1:-1] = np.median([losses[:-2], losses[1:-1], losses[2:]], axis=0)  # a single good one may be chance
    best = int(np.argmin(level))
    last_level = float(np.median(losses[-min(3, len(losses) - best) :]))
    rise = last_level / float(level[best])
    if best > len(losses) - 3 or rise < RISEN or (rise < RISEN_ALONE and not _metric_is_worse(learning)):
        return
    if last_level - level[best] < 2 * spread(losses):
        return
    at_best = _training_loss_at(learning, int(steps[best]))
    at_end = start_and_end(learning.loss)[1]
    if at_end > 0.95 * at_best:  # training does not improve either: it diverges
        return
    first, last = int(steps[best]), int(steps[-1])
    saved = _seconds_between(learning, first)
    later = f"; the {last - first:,} steps since took {_duration(saved)}" if saved > SAVED_SECONDS else ""
    yield poor(
        "overfitting",
        f"Overfitting since step {first:,}",
        [
            Evidence(
                f"validation loss rose from {losses[best]:.4g} at step {first:,} to {losses[-1]:.4g}{later}",
                "validation_loss",
                (first, last + 1),
            ),
            of_loss(
                learning,
                f"the loss of training fell from {at_best:.4g} to {at_end:.4g} meanwhile",
                (first, learning.stop),
            ),
        ],
        f"the last model is worse than that of step {first:,}",
        overfitting_cures(learning),
        weight=min(0.8, 0.4 + (rise - 1) / 2),
    )


def _metric_is_worse(learning: Learning) -> bool:
    """Whether the metric that counts is worse than at its best; so is a loss without a metric."""
    for name, lower in monitored(learning):
        if name == "loss":
            break
        values = learning.validation(name)[1]
        best = values.min() if lower else values.max()
        return bool(abs(float(best) - float(np.median(values[-2:]))) > WORSE_METRIC * max(1.0, abs(float(best))))
    return True


def _training_loss_at(learning: Learning, step: int) -> float:
    near = learning.loss.between(max(learning.first, step - max(20, learning.stop // 20)), step + 1)
    return float(np.median(near.mean)) if len(near) else float(learning.loss.mean[0])


def _seconds_between(learning: Learning, step: int) -> float:
    """Time from the validation of a step to the last one."""
    times = [each.time for each in learning.validations if each.step >= step]
    return max(times) - min(times) if times else 0.0


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def stopped_late(learning: Learning) -> Iterator[Finding]:
    """The metric that counts has long been as good as it is, and nothing stops the run."""
    if learning.settings.get("patience") or list(overfitting(learning)):
        return
    found = next(monitored(learning), None)
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
    yield poor(
        "stopped-late",
        f"Early stopping would have saved {_duration(saved)}",
        [
            Evidence(
                f"validation {name} was {values[best]:.4g} at step {int(steps[best]):,}, and is {values[-1]:.4g}",
                f"validation_{name}",
                (int(steps[best]), int(steps[-1]) + 1),
            )
        ],
        f"{saved / max(whole, 1e-9):.0%} of the time taught nothing that validation shows",
        [
            set_field(
                f"Stop early, and save the best weights: --patience {patience} --restore-best on",
                f"callbacks=[EarlyStopping(patience={patience}, restore_best_weights=True)]",
                _duration(saved),
                f"the times of the validations after step {int(steps[stopped]):,}",
                patience=patience,
                restore_best="on",
            ),
            set_field("Or lower the rate as training goes on: --schedule cosine", "CosineDecay", schedule="cosine"),
        ],
        weight=0.3 * saved / max(whole, 1e-9) + 0.1,
    )


def too_few_examples(learning: Learning) -> Iterator[Finding]:
    """There are few examples, and validation is much worse than training."""
    recorded, profile = learning.recorded, learning.profile
    built, classes = recorded.built, classes_of(recorded)
    count = built.examples if built else None
    if not count or not len(learning.loss):
        return
    limit = FEW_PER_CLASS * classes if classes else FEW
    if count > limit or not _has_gap(learning):
        return
    counts = profile.classes if profile else ()
    least = f", {min(counts):,} of the rarest class" if counts else ""
    yield poor(
        "too-few-examples",
        "There are too few training examples",
        [
            Evidence(f"{count:,} training examples{f' of {classes:,} classes' if classes else ''}{least}"),
            _gap_text(learning),
        ],
        "the model knows these by heart, and validation is much worse",
        [
            words(
                "Collect more examples, or start from weights of a model trained with more: --initial-weights",
                "weights='imagenet'",
            ),
            *overfitting_cures(learning)[1:],
        ],
        weight=0.6,
    )


def _has_gap(learning: Learning) -> bool:
    trained, validated = _accuracies(learning)
    if trained is not None and validated is not None:
        return trained - validated > GAP
    _, losses = learning.validation("loss")
    end = start_and_end(learning.loss)[1]
    return len(losses) > 0 and 0 < end < 0.5 * float(losses[-1])


def _accuracies(learning: Learning) -> tuple[float | None, float | None]:
    """The last accuracy of training and of validation; ``None`` where there is none."""
    name = accuracy_name(learning.recorded)
    series = learning.recorded.of(name).between(learning.first, learning.stop)
    _, values = learning.validation(name)
    validated = float(values[-1]) if len(values) else None
    if not name or not len(series):
        return None, validated
    last = learning.epochs[-1].metrics.get(name) if learning.epochs else None
    return (last if last is not None and math.isfinite(last) else start_and_end(series)[1]), validated


def _gap_text(learning: Learning) -> Evidence:
    trained, validated = _accuracies(learning)
    if trained is not None and validated is not None:
        name = accuracy_name(learning.recorded)
        return Evidence(f"{name} is {trained:.1%} in training and {validated:.1%} in validation", f"validation_{name}")
    _, losses = learning.validation("loss")
    end = start_and_end(learning.loss)[1]
    return Evidence(f"the loss is {end:.4g} in training and {losses[-1]:.4g} in validation", "validation_loss")


def underfitting(learning: Learning) -> Iterator[Finding]:
    """Training is settled, and worse than just taking the nearest neighbour's target."""
    profile = learning.profile
    if profile is None or profile.neighbours is None or profile.neighbours_examples < 300 or len(learning.loss) < 100:
        return
    if len(learning.epochs) < 5 or not is_settled(learning) or accuracy_rises(learning):
        return
    if learning.settings.get("augmentation"):
        return  # changed examples are harder than those that were compared
    trained = max((each for each in _accuracies(learning) if each is not None), default=None)
    report = regression_of(learning.recorded)
    if profile.classes and trained is not None:
        if profile.neighbours - trained < UNDERFIT:
            return
        text = f"accuracy is {trained:.1%}; {profile.neighbours:.1%} of neighbours have the same class"
    elif report is not None and len(report.r2) == 1 and math.isfinite(float(report.r2[0])) and profile.neighbours > 0:
        # The neighbour's target has the same error as the example's own: its correlation is the explained variance.
        if profile.neighbours - max(0.0, float(report.r2[0])) < UNDERFIT:
            return
        text = f"the model explains {float(report.r2[0]):.0%} of the variance of targets; their nearest neighbours "
        text += f"correlate with {profile.neighbours:.2f}"
    else:
        return
    yield poor(
        "underfitting",
        "The model learns less than the data has to teach",
        [
            Evidence(text, accuracy_name(learning.recorded) or learning.loss_name),
            of_loss(learning, _loss_text(learning)),
        ],
        "a larger or better trained model would be right more often",
        [
            words("Use a larger model: --model", "More units and layers"),
            words(
                "Use a larger learning rate with a schedule: --schedule cosine --warmup 5%",
                "CosineDecay(warmup_steps=...)",
            ),
        ],
        weight=0.6,
    )


def _loss_text(learning: Learning) -> str:
    half, end = float(np.median(learning.loss.mean[len(learning.loss) // 2 :][:20])), start_and_end(learning.loss)[1]
    return f"the loss was {half:.4g} in the middle of the run, and is {end:.4g}"
