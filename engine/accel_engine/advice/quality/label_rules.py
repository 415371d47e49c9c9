"""Targets that have nothing to do with inputs, are partly wrong, or unbalanced."""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from accel_engine.advice.finding import Confidence, Evidence, Finding
from accel_engine.advice.quality.findings import quality_finding, set_field, text_cure
from accel_engine.advice.quality.learning import Learning, start_and_end
from accel_engine.run.diagnostics.figures import curves
from accel_engine.words.numbers import metric, percent

UNRELATED_ERRORS = 3.0
"""Standard errors around chance within which neighbours agree by chance."""

UNRELATED_EXAMPLES = 200
"""Smallest number of examples for which unrelated neighbours are reported."""

CONFIDENCE_AREA = 0.72
"""Area under the ROC curve of the confidence for being right, below which errors hardly depend on it.

Errors of a model that has learned are where it is unsure. Those of wrong labels are anywhere, so that the area comes
near 0.5 (Northcutt, Jiang and Chuang, Confident learning, 2021, find wrong labels by it).
"""

UNSTRUCTURED = 1.5
"""Chi-squared per degree of freedom of the errors of a confusion matrix, up to which these depend neither on the true
class nor on the predicted one: 1 for random labels; classes that are hard to tell apart give several."""

MIN_WRONG = 20
"""Right and wrong predictions each, from which the area is measured."""

RARE_RECALL = 0.4
"""Recall of a class, below which a model leaves it out."""

UNEVEN = 8.0
"""Examples of the commonest class over the rarest one's, from which classes are unbalanced."""


def labels_unrelated(learning: Learning) -> Iterator[Finding]:
    """Nearest neighbours agree on the target only by chance, and the model predicts no better than chance either."""
    profile = learning.profile
    if profile is None or profile.neighbours is None or profile.neighbours_chance is None:
        yield from _validation_at_chance(learning)
        return
    count, chance, found = profile.neighbours_examples, profile.neighbours_chance, profile.neighbours
    error = (
        math.sqrt(max(chance * (1 - chance), 0.0) / max(count, 1)) if profile.classes else 1 / math.sqrt(max(count, 1))
    )
    if count < UNRELATED_EXAMPLES or found > chance + UNRELATED_ERRORS * error or not _validates_at_chance(learning):
        return
    measured = "have the same class" if profile.classes else "have targets that correlate with it"
    yield quality_finding(
        "labels-unrelated",
        "Targets seem to have nothing to do with inputs",
        [
            Evidence(
                f"of {count:,} examples, {percent(found, 1)} {measured} as their nearest neighbour; "
                f"{percent(chance, 1)} would by chance"
                if profile.classes
                else f"an example's target has a correlation of {found:.2f} with its nearest neighbour's"
            ),
            _best_validation(learning),
        ],
        "the model learns the training examples by heart, and nothing that holds for others",
        [
            text_cure(
                "Check that inputs and targets are in the same order, and that one is not shuffled without the other",
                "Shuffle x and y with the same permutation; look at some examples with their targets",
            )
        ],
        weight=1.0,
    )


def _validation_at_chance(learning: Learning) -> Iterator[Finding]:
    """Training learns, and validation is as chance has it from the first to the last time."""
    (_, losses), chance = learning.validation("loss"), learning.chance_loss
    name, guess = learning.accuracy_name, learning.chance_accuracy
    if chance is None or guess is None or not name or len(losses) < 5 or losses.min() < 0.98 * chance:
        return
    trained, validated = learning.of(name), learning.validation(name)[1]
    if not len(trained) or not len(validated) or losses[-1] < 0.995 * losses[0]:
        return
    start, end = start_and_end(trained)
    if end < start + 0.03 or end < guess + 0.03 or validated.max() > guess + 0.05:
        return
    yield quality_finding(
        "labels-unrelated",
        "Validation stays at chance while training learns",
        [
            _best_validation(learning),
            Evidence(
                f"{name} rose to {percent(end, 1)} in training, and is at most {percent(validated.max(), 1)} in "
                f"validation; the same guess for all gives {percent(guess, 1)}",
                f"validation_{name}",
            ),
        ],
        "the model learns the training examples by heart, and nothing that holds for others",
        [
            text_cure(
                "Check that inputs and targets are in the same order, in training and in validation",
                "Shuffle x and y with the same permutation; look at some examples with their targets",
            )
        ],
        weight=0.9,
    )


def _validates_at_chance(learning: Learning) -> bool:
    """Whether no validation was better than chance, and they do not become better."""
    chance, (_, losses) = learning.chance_loss, learning.validation("loss")
    if chance is None or len(losses) < 3:
        return False
    return bool(losses.min() > 0.97 * chance and losses[len(losses) // 3] - losses[-1] < 0.01 * chance)


def _best_validation(learning: Learning) -> Evidence:
    steps, losses = learning.validation("loss")
    chance = learning.chance_loss or math.nan
    return Evidence(
        f"the lowest validation loss is {metric(losses.min())}; knowing only how often each target occurs "
        f"gives {metric(chance)}",
        "validation_loss",
        (int(steps[0]), int(steps[-1]) + 1),
    )


def imbalance(learning: Learning) -> Iterator[Finding]:
    """Classes are unbalanced, and the model leaves a rare one out."""
    report, shares = learning.classification, learning.class_shares
    if report is None or report.counts is None or shares is None or len(shares) < 2:
        return
    if learning.settings.get("class_weight"):
        return
    counts = report.counts
    if counts.shape[0] != len(shares) or learning.recorded.diagnostics.steps.get("validation", 0) < 50:
        return
    common, support = int(np.argmax(shares)), counts.sum(axis=1)
    recall = np.diag(counts) / np.maximum(support, 1)
    rare = (support >= 5) & (shares > 0) & (shares * UNEVEN < shares[common]) & (recall < RARE_RECALL)
    if not rare.any() or recall[common] < 0.9 or not learning.is_settled():
        return
    worst = int(np.argmin(np.where(rare, recall, 2.0)))
    accuracy, guess = float(np.diag(counts).sum() / max(counts.sum(), 1)), float(support.max() / max(support.sum(), 1))
    yield quality_finding(
        "imbalance",
        "Rare classes are not learned",
        [
            Evidence(
                f"class {report.names[worst]} has {percent(shares[worst], 1)} of the training examples; "
                f"{percent(recall[worst], 0)} of its {support[worst]:,} validation examples are found",
                "validation_accuracy",
            ),
            Evidence(
                f"accuracy is {percent(accuracy, 1)}; always guessing {report.names[common]} gives {percent(guess, 1)}",
                "validation_accuracy",
            ),
        ],
        "accuracy hides that the rare classes are wrong",
        [
            set_field(
                "Weight classes by how rare they are: --class-weight balanced",
                "fit(class_weight={0: ..., 1: ...})",
                "more of the rare classes found, at some cost of the common ones",
                "the loss then counts each class the same",
                class_weight=("balanced",),
            ),
            text_cure(
                "Measure recall and precision: --metrics recall,precision", "metrics=[keras.metrics.AUC(curve='PR')]"
            ),
        ],
        weight=0.7,
    )


def label_noise(learning: Learning) -> Iterator[Finding]:
    """Errors hardly depend on how sure the model is, and it has learned all that it can."""
    report, guess = learning.classification, learning.chance_accuracy
    if (
        report is None
        or report.confidence is None
        or report.counts is None
        or guess is None
        or len(learning.epochs) < 3
        or not learning.is_settled(0.2)
        or learning.accuracy_rises
    ):
        return
    right, wrong = report.confidence.positives[0], report.confidence.negatives[0]
    total = int(right.sum() + wrong.sum())
    if min(int(right.sum()), int(wrong.sum())) < MIN_WRONG:
        return
    accuracy, area = float(right.sum() / total), curves(right, wrong).roc_auc
    error = 0.29 * math.sqrt(1 / right.sum() + 1 / wrong.sum())  # of two equal distributions (Hanley and McNeil, 1982)
    structure = _error_structure(report.counts)
    # Of two classes, a weak signal looks the same.
    known = accuracy > 0.8 if structure is None else structure < UNSTRUCTURED
    if area + error > CONFIDENCE_AREA or accuracy < guess + 0.15 or not known:
        return
    profile = learning.profile
    near = (
        [
            Evidence(
                f"{percent(profile.neighbours, 0)} of {profile.neighbours_examples:,} training examples have the class "
                "of their nearest neighbour"
            )
        ]
        if profile and profile.neighbours is not None and profile.classes
        else []
    )
    yield quality_finding(
        "label-noise",
        "Some labels seem to be wrong",
        [
            Evidence(
                f"{percent(1 - accuracy, 0)} of {total:,} validation predictions are wrong, hardly less where the "
                f"model is sure: its confidence tells right from wrong with an area under the ROC curve of {area:.2f}; "
                "0.5 is chance",
                f"validation_{learning.accuracy_name or 'loss'}",
            ),
            *near,
        ],
        f"up to {percent(1 - accuracy, 0)} of the labels may be wrong, and the model cannot be better than these",
        [
            text_cure(
                "Look at the worst examples of Diagnostics, and correct their labels",
                "Look at the examples with the highest loss, and correct their labels",
            ),
            set_field(
                "Trust labels less: --label-smoothing 0.1",
                "CategoricalCrossentropy(label_smoothing=0.1)",
                label_smoothing=0.1,
            ),
        ],
        weight=min(0.8, 0.3 + (1 - accuracy)),
        confidence=Confidence.LIKELY if area + 2 * error < CONFIDENCE_AREA else Confidence.POSSIBLE,
    )


def _error_structure(counts: npt.NDArray[np.int64]) -> float | None:
    """How much errors depend on the pair of true and predicted class: chi-squared per degree of freedom.

    Args:
        counts: Confusion matrix ``[classes, classes]``.

    Returns:
        About 1 if rows and columns are independent without the diagonal (quasi-independence: Goodman, 1968); ``None``
        for two classes, and without enough errors.
    """
    errors = counts.astype(np.float64)
    np.fill_diagonal(errors, 0.0)
    if len(errors) < 3 or errors.sum() < MIN_WRONG:
        return None
    expected = 1.0 - np.eye(len(errors))
    for _ in range(50):  # iterative proportional fitting
        expected *= (errors.sum(axis=1) / np.maximum(expected.sum(axis=1), 1e-9))[:, np.newaxis]
        expected *= errors.sum(axis=0) / np.maximum(expected.sum(axis=0), 1e-9)
    used = expected > 1e-9
    freedom = int(used.sum()) - int((errors.sum(axis=1) > 0).sum()) - int((errors.sum(axis=0) > 0).sum()) + 1
    return float(np.sum((errors - expected)[used] ** 2 / expected[used])) / max(freedom, 1)
