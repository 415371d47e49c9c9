"""Whether the form of the model's output fits its loss and targets."""

from collections.abc import Iterator

from accel_engine.advice.finding import Confidence, Evidence, Finding
from accel_engine.advice.quality.findings import quality_finding, text_cure
from accel_engine.advice.quality.learning import Learning
from accel_engine.words.numbers import metric

UNBOUNDED = ("linear", "relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "swish", "softplus", "tanh")
"""Activations whose outputs are not probabilities."""

PROBABLE = ("softmax", "sigmoid")
"""Activations whose outputs are probabilities."""

INFINITY = float("inf")

BOUNDED = {
    "sigmoid": (0.0, 1.0),
    "hard_sigmoid": (0.0, 1.0),
    "softmax": (0.0, 1.0),
    "softplus": (0.0, INFINITY),
    "tanh": (-1.0, 1.0),
    "relu": (0.0, INFINITY),
}
"""Activations with the lowest and the highest value that they give."""

_OF_ONE_CLASS = ("sparse_categorical_crossentropy", "categorical_crossentropy")

_OF_NUMBERS = ("mean_squared_error", "mse", "mean_absolute_error", "mae", "huber", "log_cosh", "huber_loss")


def wrong_output(learning: Learning) -> Iterator[Finding]:
    """A loss for probabilities gets logits, a softmax has one unit, or targets are out of the activation's range."""
    built = learning.built
    if built is None or not built.activation:
        return
    units = learning.output_units
    if built.from_logits is False and built.activation in UNBOUNDED:
        yield _logits_as_probabilities(built.activation, built.loss)
    elif built.from_logits and built.activation in PROBABLE:
        yield _probabilities_as_logits(built.activation, built.loss)
    elif built.activation == "sigmoid" and built.loss in _OF_ONE_CLASS and units is not None and units > 1:
        yield _sigmoid_of_classes(built.loss, units)
    elif built.activation == "softmax" and units == 1:
        yield _one_softmax()
    elif built.loss in _OF_NUMBERS:
        yield from _out_of_range(learning, built.activation)


def _wrong_output(
    title: str, evidence: str, cost: str, cure: str, script: str, weight: float, confidence: Confidence
) -> Finding:
    cures = [text_cure(cure, script)]
    return quality_finding(
        "wrong-output", title, [Evidence(evidence)], cost, cures, weight=weight, confidence=confidence
    )


def _logits_as_probabilities(activation: str, loss: str) -> Finding:
    return _wrong_output(
        "The loss takes probabilities, but the model gives none",
        f"the model's last activation is {activation}, and {loss} has from_logits=False",
        "the loss misreads the model's outputs, so that it learns slowly or not at all",
        "End the model with a softmax (a sigmoid for a single unit or several labels), or compile it with a loss that "
        "has from_logits=True",
        "Dense(classes, activation='softmax'), or loss=SparseCategoricalCrossentropy(from_logits=True)",
        0.95,
        Confidence.CERTAIN,
    )


def _probabilities_as_logits(activation: str, loss: str) -> Finding:
    return _wrong_output(
        "The loss takes logits, but the model gives probabilities",
        f"the model's last activation is {activation}, and {loss} has from_logits=True",
        f"where Keras does not see the {activation}, as behind another layer, the loss applies it again: the model "
        "learns slowly, and is never sure",
        f"Compile the model without from_logits, or end it without the {activation}",
        "loss=SparseCategoricalCrossentropy(), or Dense(classes) without activation",
        0.9,
        Confidence.CERTAIN,
    )


def _sigmoid_of_classes(loss: str, units: int) -> Finding:
    return _wrong_output(
        "A sigmoid gives no probabilities of classes",
        f"the model's last activation is sigmoid, with {units} units; {loss} takes one class of several",
        "the outputs do not add up to 1, so that the loss misreads them",
        "End the model with a softmax; or, for several labels at once, use binary_crossentropy",
        "Dense(classes, activation='softmax')",
        0.8,
        Confidence.LIKELY,
    )


def _one_softmax() -> Finding:
    return _wrong_output(
        "A softmax of a single unit is always 1",
        "the model's output has one unit with the activation softmax",
        "the model predicts the same for all examples",
        "End the model with a sigmoid, or with a unit for each class",
        "Dense(1, activation='sigmoid')",
        0.95,
        Confidence.CERTAIN,
    )


def _out_of_range(learning: Learning, activation: str) -> Iterator[Finding]:
    """The activation gives a range that the targets leave."""
    profile = learning.profile
    least, most = (profile.target_low, profile.target_high) if profile else (None, None)
    if least is None or most is None or activation not in BOUNDED:
        return
    low, high = BOUNDED[activation]
    margin = 0.05 * (most - least)
    if least >= low - margin and most <= high + margin:
        return
    shown = f"from {low:g} to {high:g}" if high < INFINITY else f"of at least {low:g}"
    yield _wrong_output(
        f"Targets are out of the range of {activation}",
        f"{activation} gives values {shown}; targets are from {metric(least)} to {metric(most)}",
        "the model cannot give some of the targets",
        "End the model without an activation, or scale the targets to its range",
        "Dense(units) without activation",
        0.9,
        Confidence.CERTAIN,
    )
