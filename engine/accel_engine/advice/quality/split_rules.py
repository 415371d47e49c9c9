"""Whether training and validation examples fit together: leaks, duplicates, shifts, and the order of training."""

from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Evidence, Finding
from accel_engine.advice.quality.findings import quality_finding, set_field, text_cure
from accel_engine.advice.quality.learning import Learning, start_and_end
from accel_engine.run.diagnostics import DataProfile
from accel_engine.words.numbers import metric, percent

MIN_LEAKED = 5
"""Validation examples that training has, too, from which they count."""

LEAKED_SHARE = 0.01

MANY_FEATURES = 16
"""Features of an example, other than a table's row, from which two equal ones are not an accident."""

CONTINUOUS_FEATURES = 3
"""The same for features with many values each."""

DUPLICATES_SHARE = 0.1

SHIFTED_MEAN = 1.0
"""Difference of the means of all inputs, in standard deviations of training."""

SHIFTED_SPREAD = 2.0
"""Quotient of the standard deviations of all inputs."""

MIN_EXAMPLES = 50

WORSE = 1.3
"""The loss of validation over the loss of training, from which a shift of inputs may be why."""

CLASSES_DIFFER = 0.25
"""Share of validation that would have to be of other classes to have the classes of training (total variation)."""


def leak(learning: Learning) -> Iterator[Finding]:
    """Validation examples are also among the training examples."""
    profile = learning.profile
    if profile is None or profile.compared_validation == 0 or profile.compared == 0:
        return
    share = profile.leaked / profile.compared_validation
    if profile.leaked < MIN_LEAKED or share < LEAKED_SHARE or _repeats_anyway(learning, profile):
        return
    # Where examples have few possible values, equal ones are no leak: training has as many equal to one another.
    repeated = profile.duplicates / profile.compared
    if share < 2 * repeated + 0.005 and (_repeat_by_accident(profile) or share < 0.05):
        return
    part = profile.compared / profile.of_examples if profile.of_examples else 1.0
    compared = f"; compared were {profile.compared:,} of {profile.of_examples:,} training examples" if part < 1 else ""
    yield quality_finding(
        "leak",
        "Validation examples are also training examples",
        [
            Evidence(
                f"{profile.leaked:,} of {profile.compared_validation:,} validation examples "
                f"({percent(share, 0)}) have the inputs and targets of a training example{compared}"
            )
        ],
        "validation looks better than the model is on new examples",
        [
            text_cure(
                "Remove duplicates before the data is split, or keep groups of related examples on one side: "
                "--split column:NAME or --validation-data FILE",
                "x, rows = np.unique(x, axis=0, return_index=True); y = y[rows], before the split",
            )
        ],
        weight=min(0.9, 0.5 + share),
        confidence=Confidence.CERTAIN,
    )


def _repeat_by_accident(profile: DataProfile) -> bool:
    """Whether examples may be equal because they have few possible values, as rows of categories."""
    if (profile.continuous_features or 0) >= CONTINUOUS_FEATURES:
        return False
    is_table = profile.feature_scales is not None
    return is_table or profile.features < MANY_FEATURES


def duplicates(learning: Learning) -> Iterator[Finding]:
    """Many training examples are equal."""
    profile = learning.profile
    if profile is None or profile.compared == 0 or _repeat_by_accident(profile) or _repeats_anyway(learning, profile):
        return
    share = profile.duplicates / profile.compared
    if share < DUPLICATES_SHARE or profile.duplicates < MIN_LEAKED:
        return
    other = f", {profile.conflicts:,} of them with another class" if profile.conflicts else ""
    yield quality_finding(
        "duplicates",
        "Many training examples are equal",
        [
            Evidence(
                f"{profile.duplicates:,} of {profile.compared:,} have the inputs of another one "
                f"({percent(share, 0)}){other}"
            )
        ],
        "the model learns these by heart, and an epoch takes longer than it needs",
        [
            text_cure(
                "Remove duplicates from the data", "x, rows = np.unique(x, axis=0, return_index=True); y = y[rows]"
            )
        ],
        weight=0.3 if not profile.conflicts else 0.5,
    )


def _repeats_anyway(learning: Learning, profile: DataProfile) -> bool:
    """Whether inputs are all alike, or made to be fast rather than different."""
    if str(learning.settings.get("data", "")).partition(":")[0] == "synthetic":
        return True
    return profile.constant_features is not None and profile.constant_features == profile.features > 0


def validation_shift(learning: Learning) -> Iterator[Finding]:
    """Inputs or classes of validation differ from training."""
    profile = learning.profile
    if profile is None or learning.settings.get("time") or learning.settings.get("window"):
        return  # a time series is split by time, and changes
    evidence = [each for each in (_range_shift(learning, profile), _class_shift(profile)) if each]
    certain = bool(evidence)
    if not evidence and (feature := _feature_shift(learning, profile)):
        evidence = [feature]
    if not evidence:
        return
    yield quality_finding(
        "validation-shift",
        "Validation examples are unlike training examples",
        evidence,
        "the model is measured on something that it has not learned",
        [
            set_field(
                "Split at random, evenly by class: --split stratified",
                "train_test_split(x, y, stratify=y)",
                split="stratified",
            )
            if profile.classes and not _has_own_validation(learning)
            else text_cure(
                "Prepare both in the same way, and mix examples before they are split",
                "Scale validation with the figures of training: normalization.adapt(x_train) only",
            )
        ],
        weight=0.7,
        confidence=Confidence.CERTAIN if certain else Confidence.LIKELY,
    )


def _has_own_validation(learning: Learning) -> bool:
    settings = learning.settings
    return bool(settings.get("validation_data") or str(settings.get("data", ".npz")).endswith(".npz"))


MUCH_BETTER = 0.7
"""The loss of validation over the loss of training, below which validation is easier."""

BETTER_BY = 0.15
"""The accuracy of validation minus the accuracy of training, from which it is."""

_NOISY = ("Dropout", "SpatialDropout", "GaussianNoise", "GaussianDropout", "AlphaDropout", "Random")
"""Beginnings of layers that make training harder than validation."""


def validation_better(learning: Learning) -> Iterator[Finding]:
    """Validation is far better than training, and nothing in the model or the plan explains it."""
    kinds, settings = learning.layer_kinds, learning.settings
    name, (_, losses) = learning.accuracy_name, learning.validation("loss")
    accuracy, (_, validated) = learning.of(name), learning.validation(name)
    if not kinds or any(kind.startswith(_NOISY) for kind in kinds) or not learning.is_settled(0.2):
        return
    if any(settings.get(each) for each in ("augmentation", "label_smoothing", "class_weight", "ema_momentum")):
        return
    if min(len(losses), len(validated)) < 3 or not len(accuracy) or not len(learning.loss):
        return
    trained, right = learning.last_loss, start_and_end(accuracy)[1]
    if trained <= 0 or losses[-3:].max() > MUCH_BETTER * trained or validated[-3:].min() < right + BETTER_BY:
        return
    yield quality_finding(
        "validation-better",
        "Validation is far better than training",
        [
            Evidence(
                f"the last losses are {metric(losses[-1])} in validation and {metric(trained)} in "
                f"training; {name} is {percent(validated[-1], 1)} and {percent(right, 1)}",
                "validation_loss",
            )
        ],
        "validation is easier than what the model is trained for, or training labels are partly wrong",
        [
            text_cure(
                "Check that both splits are of the same kind, and look at training examples with a high loss for "
                "wrong labels",
                "Compare x_train and x_val, and their targets",
            )
        ],
        weight=0.4,
        confidence=Confidence.POSSIBLE,
    )


def _range_shift(learning: Learning, profile: DataProfile) -> Evidence | None:
    """All inputs together have another mean or spread: a very different one, or one with which validation is worse.

    A time series with a trend, which is split by time, has another mean, and a model may do well all the same.
    """
    first, second = profile.inputs, profile.validation_inputs
    if first is None or second is None or min(profile.examples, profile.validation_examples) < MIN_EXAMPLES:
        return None
    values = (first.mean, first.deviation, second.mean, second.deviation)
    if None in values or not first.deviation or not second.deviation:
        return None
    mean, deviation, other_mean, other_deviation = (float(value or 0.0) for value in values)
    quotient = max(deviation / other_deviation, other_deviation / deviation)
    distance = abs(mean - other_mean) / deviation
    if distance < SHIFTED_MEAN and quotient < SHIFTED_SPREAD:
        return None
    if max(distance / 3, quotient / 3) < SHIFTED_MEAN and not _is_worse(learning):
        return None
    return Evidence(
        f"inputs have a mean of {metric(mean)} and deviate by {metric(deviation)} in training; "
        f"{metric(other_mean)} and {metric(other_deviation)} in validation"
    )


def _is_worse(learning: Learning) -> bool:
    """Whether the last loss of validation is clearly higher than the last one of training."""
    _, losses = learning.validation("loss")
    trained = learning.last_loss if len(learning.loss) else 0.0
    return len(losses) > 0 and trained > 0 and bool(losses[-1] > WORSE * trained)


def _class_shift(profile: DataProfile) -> Evidence | None:
    """Classes are not as frequent in validation as in training."""
    first, second = np.array(profile.classes, float), np.array(profile.validation_classes, float)
    if len(first) != len(second) or min(first.sum(), second.sum(), 1e9) < MIN_EXAMPLES:
        return None
    shares, others = first / first.sum(), second / second.sum()
    distance = float(np.abs(shares - others).sum() / 2)
    by_chance = float(np.sum(np.sqrt(shares * (1 - shares) * (1 / first.sum() + 1 / second.sum()))) * 0.4)
    if distance < CLASSES_DIFFER + by_chance:
        return None
    index = int(np.argmax(np.abs(shares - others)))
    return Evidence(
        f"class {index} has {percent(shares[index], 1)} of the training examples, and "
        f"{percent(others[index], 1)} of the validation examples"
    )


def _feature_shift(learning: Learning, profile: DataProfile) -> Evidence | None:
    """Some features differ, and validation is worse than training."""
    shift, (_, losses) = profile.shift, learning.validation("loss")
    if shift is None or shift.features < max(1, 0.01 * profile.features) or not _is_worse(learning):
        return None
    trained = learning.last_loss
    return Evidence(
        f"{shift.features:,} of {profile.features:,} features differ in the mean; {shift.feature} most, by "
        f"{shift.deviations:.2g} standard deviations; the loss of validation is "
        f"{metric(losses[-1])}, of training {metric(trained)}",
        "validation_loss",
    )
