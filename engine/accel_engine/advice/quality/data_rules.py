"""Rules on the profile of the data: inputs and targets that a model cannot learn from without a change."""

import math
from collections.abc import Iterator

from accel_engine.advice.finding import Confidence, Evidence, Finding
from accel_engine.advice.quality.findings import of_loss, quality_finding, set_field, text_cure
from accel_engine.advice.quality.learning import Learning, block_means, start_and_end
from accel_engine.advice.quality.number_rules import has_lost, number_repairs
from accel_engine.run.diagnostics import DataProfile
from accel_engine.words.numbers import metric, percent

LARGE_INPUTS = 10.0
"""Root mean square from which inputs count as not scaled; in [0, 1], or standardised, they have at most about 1."""

LARGE_TARGETS = 50.0
"""The same for targets that are numbers."""

HIGH_START = 3.0
"""The first loss over the loss by chance, above which inputs are too large for the initial weights."""

HIGH_LOSS = 4.0
"""The first loss over the loss by chance, from which something is wrong before the first step."""

FALLEN = 0.05
"""A model learns once its loss has fallen by this share of its mean over the first tenth of the steps."""

UNEVEN_FEATURES = 1000.0
"""Standard deviation of the widest feature of a table over the narrowest, above which they need scaling."""

NORMALIZING = frozenset(
    (
        "Normalization",
        "Rescaling",
        "BatchNormalization",
        "LayerNormalization",
        "GroupNormalization",
        "RMSNormalization",
        "UnitNormalization",
        "Embedding",
        "Lambda",
        "Discretization",
    )
)
"""Layers after which the scale of inputs does not matter."""

RESCALING = frozenset(("Normalization", "Rescaling", "Lambda"))
"""Layers that give outputs another scale."""

_LAST_LAYERS = 3
"""Number of last layers. If one is among :data:`RESCALING`, targets need no scaling; a reshaping one may follow."""

_FIRST_LAYERS = 4
"""Number of first layers. If one is among :data:`NORMALIZING`, inputs need no scaling."""


def inputs_not_finite(learning: Learning) -> Iterator[Finding]:
    """Inputs or targets have NaN or infinite values, and the model does not handle them."""
    profile = learning.profile
    if profile is None or not _may_be_lost(learning):
        return
    inputs = profile.inputs.not_finite if profile.inputs else 0.0
    targets = profile.targets_not_finite or 0.0
    if not inputs and not targets:
        return
    where = "inputs" if inputs else "targets"
    yield quality_finding(
        "data-not-finite",
        f"The {where} have NaN or infinite values",
        [
            Evidence(
                f"{percent(max(inputs, targets), 2)} of the values of {where} in {profile.examples:,} training examples"
            )
        ],
        "one such value makes the loss and all weights NaN",
        [
            set_field(
                "Leave out the rows with such values: --invalid-examples skip",
                "x[np.isfinite(x).all(axis=1)]",
                invalid_examples="skip",
            ),
        ],
        weight=0.9,
        confidence=Confidence.CERTAIN if has_lost(learning) else Confidence.LIKELY,
    )


def _may_be_lost(learning: Learning) -> bool:
    """Whether losses are not finite, do not fall, or are not recorded yet."""
    if has_lost(learning) or number_repairs(learning) or not learning.recorded.steps:
        return True
    means = block_means(learning.loss, 10)
    return len(means) == 10 and bool(means[0] - means[-1] < FALLEN * abs(means[0]))


def inputs_alike(learning: Learning) -> Iterator[Finding]:
    """All inputs are the same."""
    profile = learning.profile
    if profile is None or not profile.features or profile.examples < 10:
        return
    if profile.constant_features == profile.features:
        yield quality_finding(
            "inputs-alike",
            "All inputs are the same",
            [Evidence(f"each of the {profile.features:,} features has one value in {profile.examples:,} examples")],
            "the model cannot tell examples apart",
            [text_cure("Check how the inputs are read and scaled", "Print x.min(), x.max() and x.std()")],
            weight=1.0,
            confidence=Confidence.CERTAIN,
        )


def targets_alike(learning: Learning) -> Iterator[Finding]:
    """All targets are the same, and the loss compares outputs with them."""
    profile = learning.profile
    if profile is None or profile.examples < 10 or not learning.has_known_loss:
        return  # a loss of one's own may need no targets
    only_class = bool(profile.classes) and sum(count > 0 for count in profile.classes) == 1
    if only_class or (profile.target_deviation == 0 and _knows_all_targets(learning, profile)):
        yield quality_finding(
            "targets-alike",
            "All targets are the same",
            [Evidence(f"one value in {profile.of_examples if only_class else profile.examples:,} training examples")],
            "there is nothing to learn",
            [text_cure("Check which column or array is the target: --target", "Print np.unique(y)")],
            weight=1.0,
            confidence=Confidence.CERTAIN if only_class or _sees_all(profile) else Confidence.LIKELY,
        )


def _knows_all_targets(learning: Learning, profile: DataProfile) -> bool:
    """Whether all targets were looked at, or validation's are all the same, too."""
    report = learning.regression
    if report is not None and len(report.r2) and math.isfinite(float(report.r2[0])):
        return False  # events that are rare
    return _sees_all(profile) or (report is not None and len(report.r2) == 1)


def _sees_all(profile: DataProfile) -> bool:
    return profile.of_examples <= profile.examples


def inputs_not_scaled(learning: Learning) -> Iterator[Finding]:
    """Large inputs reach the first weights, and the first loss is far above chance."""
    profile, chance = learning.profile, learning.chance_loss
    inputs = profile.inputs if profile else None
    if profile is None or inputs is None or inputs.mean is None or inputs.deviation is None:
        return
    if chance is None or not len(learning.loss) or _normalizes(learning):
        return
    size, first = math.hypot(inputs.mean, inputs.deviation), learning.first_loss
    scales = profile.feature_scales or 1.0
    _, end = start_and_end(learning.loss)
    uneven = scales >= UNEVEN_FEATURES and (first > HIGH_START * chance or end > 0.5 * chance)
    if not (size >= LARGE_INPUTS and first > HIGH_START * chance) and not uneven:
        return
    ends = " to ".join(metric(each) for each in (inputs.low, inputs.high) if each is not None)
    size_text = f"inputs are from {ends}, with a root mean square of {metric(size)}"
    scales_text = f"; the widest feature varies {scales:,.0f} times as much as the narrowest" if uneven else ""
    yield quality_finding(
        "inputs-not-scaled",
        "The inputs are not scaled",
        [
            Evidence(size_text + scales_text),
            of_loss(
                learning,
                f"the first loss is {metric(first)}; one that knows only how often targets occur is {metric(chance)}",
                (learning.first, learning.first + 1),
            ),
        ],
        "the first updates are too large, and the model learns slowly or not at all",
        [
            set_field("Scale integers to [0, 1]: --scale 0-1", "x = x / 255", scale="0-1")
            if _can_scale(learning)
            else text_cure(
                "Begin the model with a layer Normalization, or scale the inputs in the data",
                "normalization = keras.layers.Normalization(); normalization.adapt(x)",
            )
        ],
        weight=0.8,
    )


def initial_loss_high(learning: Learning) -> Iterator[Finding]:
    """The first loss of a classifier is far above chance: it is sure of wrong classes before it has learned any."""
    classes, loss = learning.classes, learning.loss
    if not learning.is_fresh or not classes or classes < 2 or len(loss) < 10 or "Dropout" in learning.layer_kinds:
        return
    chance = math.log(classes)
    first, end = learning.first_loss, start_and_end(loss)[1]
    if int(loss.first[0]) > 0 or first < HIGH_LOSS * chance or end < 0.5 * chance:
        return
    if _is_accurate(learning, classes) is not False:
        return  # a penalty of weights may be most of the loss
    yield quality_finding(
        "initial-loss-high",
        "The first loss is far above chance",
        [
            of_loss(
                learning,
                f"the first loss is {metric(first)}; giving all {classes:,} classes the same gives {metric(chance)}",
                (learning.first, learning.first + 1),
            ),
            of_loss(learning, f"the last losses are about {metric(end)}"),
        ],
        "the first steps only undo it: initial weights or inputs are too large, or the loss takes logits for "
        "probabilities",
        [
            text_cure(
                "Use the default initializers, scale the inputs, and check the last activation and from_logits of "
                "the loss",
                "Print the outputs for a batch before training: they should be about 1 / classes",
            )
        ],
        weight=0.7,
    )


def _is_accurate(learning: Learning, classes: int) -> bool | None:
    """Whether the last accuracy is well above chance; ``None`` if there is none."""
    accuracy = learning.of(learning.accuracy_name)
    report, least = learning.classification, 1 / classes + 0.5 * (1 - 1 / classes)
    if len(accuracy):
        return start_and_end(accuracy)[1] > least
    if report is None or report.counts is None or not report.counts.sum():
        return None
    return bool(report.counts.trace() / report.counts.sum() > least)


def _normalizes(learning: Learning) -> bool:
    kinds = [kind for kind in learning.layer_kinds if kind not in ("Flatten", "Reshape", "InputLayer")]
    return any(kind in NORMALIZING for kind in kinds[:_FIRST_LAYERS])


def _rescales(learning: Learning) -> bool:
    """Whether the model's last layers turn its numbers into the units of the targets, as built-in models do."""
    return bool(RESCALING.intersection(learning.layer_kinds[-_LAST_LAYERS:]))


def _can_scale(learning: Learning) -> bool:
    built = learning.built
    can = built is not None and built.inputs.startswith(("uint8", "uint16"))
    return can and learning.settings.get("scale", "0-1") != "0-1"


def targets_not_scaled(learning: Learning) -> Iterator[Finding]:
    """Numbers to predict are large, and the model explains little of them."""
    profile, chance, report = learning.profile, learning.chance_loss, learning.regression
    if profile is None or profile.target_mean is None or profile.target_deviation is None or not len(learning.loss):
        return
    size = math.hypot(profile.target_mean, profile.target_deviation)
    explained = float(report.r2[0]) if report is not None and len(report.r2) else None
    _, end = start_and_end(learning.loss)
    unlearned = (chance is not None and end > 0.5 * chance) or (explained is not None and explained < 0.5)
    if size < LARGE_TARGETS or learning.output_units is None or not unlearned or _rescales(learning):
        return
    found = f", and the model explains {percent(explained, 0)} of their variance" if explained is not None else ""
    yield quality_finding(
        "targets-not-scaled",
        "The numbers to predict are not scaled",
        [
            Evidence(
                f"targets have a mean of {metric(profile.target_mean)} and deviate by "
                f"{metric(profile.target_deviation)}{found}"
            ),
            of_loss(learning, f"the loss is still {metric(end)}"),
        ],
        "weights grow by about the learning rate a step, and need very many to reach such numbers",
        [
            text_cure(
                f"End the model with keras.layers.Rescaling({profile.target_deviation:.4g}, "
                f"offset={profile.target_mean:.4g}), as built-in models do, or scale the targets",
                "y = (y - y.mean()) / y.std(), and undo it for predictions",
            )
        ],
        weight=0.8,
    )
