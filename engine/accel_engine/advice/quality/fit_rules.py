"""Rules on models that have learned too little of their data, or too few examples by heart."""

import math
from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Cure, Evidence, Finding
from accel_engine.advice.quality.findings import of_loss, quality_finding, rate_cure, text_cure
from accel_engine.advice.quality.learning import Learning, start_and_end
from accel_engine.advice.quality.regularization import overfitting_cures
from accel_engine.advice.quality.usual_rates import rates_of
from accel_engine.words.numbers import metric, percent

FEW_PER_CLASS = 20
"""Training examples of a class below which a model knows too little of it."""

FEW = 200
"""The same where there are no classes."""

GAP = 0.1
"""Accuracy of training minus accuracy of validation, from which more examples would help."""

NEAR = 3.0
"""How many times the usual learning rate a rate may be, or its inverse, that has no more to gain from the usual one."""

UNDERFIT = 0.15
"""Accuracy of nearest neighbours minus accuracy of training, from which the model is too small or trained badly."""


def too_few_examples(learning: Learning) -> Iterator[Finding]:
    """There are few examples, and validation is much worse than training."""
    recorded, profile = learning.recorded, learning.profile
    built, classes = recorded.built, learning.classes
    count = built.examples if built else None
    if not count or not len(learning.loss):
        return
    limit = FEW_PER_CLASS * classes if classes else FEW
    if count > limit or not _has_gap(learning):
        return
    counts = profile.classes if profile else ()
    least = f", {min(counts):,} of the rarest class" if counts else ""
    yield quality_finding(
        "too-few-examples",
        "There are too few training examples",
        [
            Evidence(f"{count:,} training examples{f' of {classes:,} classes' if classes else ''}{least}"),
            _gap_text(learning),
        ],
        "the model knows these by heart, and validation is much worse",
        [
            text_cure(
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
    end = learning.last_loss
    return len(losses) > 0 and 0 < end < 0.5 * float(losses[-1])


def _accuracies(learning: Learning) -> tuple[float | None, float | None]:
    """The last accuracy of training and of validation; ``None`` where there is none."""
    name = learning.accuracy_name
    series = learning.of(name)
    _, values = learning.validation(name)
    validated = float(values[-1]) if len(values) else None
    if not name or not len(series):
        return None, validated
    last = learning.epochs[-1].metrics.get(name) if learning.epochs else None
    return (last if last is not None and math.isfinite(last) else start_and_end(series)[1]), validated


def _gap_text(learning: Learning) -> Evidence:
    trained, validated = _accuracies(learning)
    if trained is not None and validated is not None:
        name = learning.accuracy_name
        return Evidence(
            f"{name} is {percent(trained, 1)} in training and {percent(validated, 1)} in validation",
            f"validation_{name}",
        )
    _, losses = learning.validation("loss")
    end = learning.last_loss
    return Evidence(
        f"the loss is {metric(end)} in training and {metric(losses[-1])} in validation",
        "validation_loss",
    )


def underfitting(learning: Learning) -> Iterator[Finding]:
    """Training is settled, and worse than just taking the nearest neighbour's target."""
    missing = _missing_learning(learning)
    if missing is None:
        return
    yield quality_finding(
        "underfitting",
        "The model learns less than the data has to teach",
        [
            Evidence(missing, learning.accuracy_name or learning.loss_name),
            of_loss(learning, _loss_text(learning)),
        ],
        "a larger or better trained model would be right more often",
        [text_cure("Use a larger model: --model", "More units and layers"), *_other_rate(learning)],
        weight=0.6,
    )


def is_underfit(learning: Learning) -> bool:
    """Whether training is settled, and worse than just taking the nearest neighbour's target."""
    return _missing_learning(learning) is not None


def _missing_learning(learning: Learning) -> str | None:
    """Figures on what nearest neighbours know and the settled model does not; ``None`` where it knows as much."""
    profile = learning.profile
    if profile is None or profile.neighbours is None or profile.neighbours_examples < 300 or len(learning.loss) < 100:
        return None
    if len(learning.epochs) < 5 or not learning.is_settled() or learning.accuracy_rises:
        return None
    if learning.settings.get("augmentation"):
        return None  # changed examples are harder than those that were compared
    trained = max((each for each in _accuracies(learning) if each is not None), default=None)
    report = learning.regression
    if profile.classes and trained is not None:
        if profile.neighbours - trained < UNDERFIT:
            return None
        return f"accuracy is {percent(trained, 1)}; {percent(profile.neighbours, 1)} of neighbours have the same class"
    if report is None or len(report.r2) != 1 or not math.isfinite(float(report.r2[0])):
        return None
    # The neighbour's target has the same error as the example's own: its correlation is the explained variance.
    explained = float(report.r2[0])
    if profile.neighbours <= 0 or profile.neighbours - max(0.0, explained) < UNDERFIT:
        return None
    return (
        f"the model explains {percent(explained, 0)} of the variance of targets; their nearest neighbours correlate "
        f"with {profile.neighbours:.2f}"
    )


def _other_rate(learning: Learning) -> list[Cure]:
    """Another learning rate, towards the usual one; nothing for a usual one."""
    rate, usual = learning.highest_rate, rates_of(learning)
    if rate is None or usual is None:
        return [text_cure("Try learning rates 10 times larger and smaller: accel-tui find learning-rate")]
    if usual.usual / NEAR <= rate <= usual.usual * NEAR:
        return []
    return [rate_cure(usual.usual, "", "")]


def _loss_text(learning: Learning) -> str:
    half, end = float(np.median(learning.loss.mean[len(learning.loss) // 2 :][:20])), learning.last_loss
    return f"the loss was {metric(half)} in the middle of the run, and is {metric(end)}"
