"""Names losses, tells Keras' own from custom ones, and says what form of outputs they take and models have."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import keras
import numpy as np

from accel_engine.private_names.keras_names import loss_takes_logits, mask_of

Loss: TypeAlias = str | Callable[..., Any] | keras.losses.Loss | list["Loss"] | dict[str, "Loss"] | None
"""A loss as it may be given to ``compile``; ``None`` for a model that computes its own."""

_BATCH_LOSSES = {"circle", "dice", "tversky"}
"""Keras' losses that are not means over examples."""

_OF_INDICES = ("sparse", "categorical_generalized")
"""How the names of Keras' losses that take class indices begin."""

_OWN_TARGETS = {"ctc", "circle", "poisson"}
"""Keras' losses whose integer targets are not classes of the outputs."""

_MEAN_REDUCTIONS = {"sum_over_batch_size", "mean"}
"""Keras' names of reductions that are the mean over all examples, also with sample weights."""


def single_loss(loss: Loss) -> Loss:
    """The loss of a single output, which may be in a list or a dictionary."""
    if isinstance(loss, dict):
        loss = list(loss.values())
    return single_loss(loss[0]) if isinstance(loss, list) and len(loss) == 1 else loss


def loss_name(loss: Loss) -> str:
    """The name of a loss, in Keras' snake case; ``several`` for more than one."""
    loss = single_loss(loss)
    if loss is None or isinstance(loss, str):
        return loss or "the model's own"
    if isinstance(loss, list):
        return "several"
    return str(getattr(loss, "name", None) or getattr(loss, "__name__", None) or type(loss).__name__)


def loss_kind(loss: Loss) -> str:
    """The name of Keras' function for a loss, whatever the loss is called; :func:`loss_name` of a custom one."""
    loss = known = single_loss(loss)
    if isinstance(loss, str):
        with suppress(ValueError):  # an unknown name
            known = keras.losses.get(loss)
    function: Any = getattr(known, "fn", known)
    return str(function.__name__) if is_of_keras(known) and hasattr(function, "__name__") else loss_name(loss)


def takes_indices(loss: Loss) -> bool:
    """Whether a loss of Keras compares class indices with the probabilities of classes."""
    return is_of_keras(single_loss(loss)) and loss_kind(loss).startswith(_OF_INDICES)


def has_own_targets(loss: Loss) -> bool:
    """Whether integers are not classes of the outputs for a loss of Keras: texts, groups or counts, which it takes."""
    return is_of_keras(single_loss(loss)) and loss_kind(loss) in _OWN_TARGETS


def is_keras_defined(thing: Any) -> bool:
    """Whether a function, or the class of an object, is defined by Keras."""
    return str(getattr(thing, "__module__", "")).startswith("keras.")


def is_of_keras(loss: Loss) -> bool:
    """Whether a loss is one of Keras', by name or not, rather than a custom one."""
    return isinstance(loss, str) or is_keras_defined(getattr(loss, "fn", loss))


def is_mean(loss: Loss) -> bool:
    """Whether a loss is one of Keras' own and the mean over all examples."""
    loss = single_loss(loss)
    known: Any = keras.losses.get(loss) if isinstance(loss, str) else loss
    function = getattr(known, "fn", known)  # the function in a Keras class
    if not (is_keras_defined(known) and is_keras_defined(function)) or function.__name__ in _BATCH_LOSSES:
        return False
    return getattr(known, "reduction", "mean") in _MEAN_REDUCTIONS  # Keras takes the mean of a function


def every_loss(loss: Loss) -> list[Loss]:
    """The losses of all outputs that have one."""
    return [each for each in keras.tree.flatten(loss) if each is not None]


def is_over_batch(loss: Loss) -> bool:
    """Whether a loss of Keras compares the examples of a batch with each other, or divides sums over all of them."""
    return is_of_keras(single_loss(loss)) and loss_kind(loss) in _BATCH_LOSSES


def is_sum(loss: Loss) -> bool:
    """Whether a loss is the sum over all examples."""
    return getattr(loss, "reduction", None) == "sum"


class MixedBinaryAccuracy(keras.metrics.BinaryAccuracy):  # type: ignore[misc]
    """Binary accuracy, also for mixed targets: one above 0.5 counts as 1."""

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Add a batch; see :class:`keras.metrics.BinaryAccuracy`."""
        rounded = keras.ops.cast(keras.ops.cast(y_true, "float32") > 0.5, "float32")
        return super().update_state(rounded, y_pred, sample_weight)


_PASSING = (keras.layers.Reshape, keras.layers.Flatten, keras.layers.Identity)
"""Layers that give what they get."""


def output_activation(model: Any) -> str:
    """Keras' name of the activation of a model's single output, such as ``softmax`` or ``linear``.

    Empty for several outputs, and where it is unknown: in a subclassed model, whose layers have no order, and where a
    function of tensors comes last.
    """
    if not isinstance(model, keras.Sequential) and len(getattr(model, "outputs", None) or ()) != 1:
        return ""
    for operation in reversed(getattr(model, "operations", None) or model.layers):
        if isinstance(operation, keras.Model):
            return output_activation(operation)
        activation = getattr(operation, "activation", None)
        name = str(getattr(activation, "__name__", "")) if activation is not None else _own_name(operation)
        passes = isinstance(operation, _PASSING) or (
            isinstance(operation, keras.layers.Activation) and name == "linear"  # as after a softmax in float16
        )
        if not passes:
            return name
    return ""


def takes_logits(loss: Any) -> bool | None:
    """Whether a crossentropy of Keras takes logits; ``None`` for any other loss."""
    loss = single_loss(loss)
    if loss is None or isinstance(loss, list | dict) or not is_of_keras(loss) or "crossentropy" not in loss_name(loss):
        return None
    return loss_takes_logits(loss)


def takes_scores(loss: Loss) -> bool:
    """Whether a loss takes outputs of any size, of which 0 is the middle: logits, or the scores of a hinge loss."""
    loss = single_loss(loss)
    return loss_takes_logits(loss) or (is_of_keras(loss) and "hinge" in loss_kind(loss))


def logits_note(model: Any) -> str:
    """A warning on a compiled model whose crossentropy takes logits that it does not give; empty if it is right."""
    activation = output_activation(model)
    if activation not in ("softmax", "sigmoid") or not takes_logits(model.loss):
        return ""
    name = loss_name(model.loss)
    return f"{name} has from_logits=True, but the model ends with a {activation}: leave out one of the two"


def tversky_note(loss: Loss) -> str:
    """A warning on a Tversky loss with different coefficients where Keras takes one for the other; empty elsewhere.

    Keras 3.15 weighs false negatives by ``alpha``, against its documentation (keras-team/keras#23333).
    """
    chosen = [each for each in every_loss(loss) if isinstance(each, keras.losses.Tversky) and each.alpha != each.beta]
    if not chosen:
        return ""
    of_false_positives = keras.losses.Tversky(alpha=1.0, beta=0.0)
    if (
        float(of_false_positives(np.array([[1.0], [0.0]]), np.ones((2, 1)))) > 0.25
    ):  # one of two is a false positive: 0.5
        return ""
    return (
        f"Keras {keras.__version__} weighs false negatives by alpha and false positives by beta, against its "
        f"documentation: exchange alpha={chosen[0].alpha:g} and beta={chosen[0].beta:g} to get what it describes"
    )


def masked_ctc_fault(loss: Loss, model: Any) -> str:
    """Why a CTC loss does not go with a model whose outputs are masked; empty if it does.

    Keras multiplies the losses, one for each example, by the mask, one for each step of time: an error, or wrong in
    silence if there are as many examples as steps (keras-team/keras#23235). The lengths of the outputs do not follow
    the mask, either.
    """
    if loss_kind(loss) != "ctc" or not is_of_keras(single_loss(loss)):
        return ""
    masked = any(mask_of(each) is not None for each in keras.tree.flatten(getattr(model, "outputs", None) or []))
    if not masked:
        return ""
    return (
        "CTC takes no mask, but the model's outputs have one, of mask_zero=True or a Masking layer: Keras would weigh "
        "examples by steps of time. Leave the mask out"
    )


def _own_name(operation: Any) -> str:
    """The name of a layer that is an activation itself; empty for others."""
    name = type(operation).__name__
    return name.lower() if name in ("Softmax", "Sigmoid", "ReLU") else ""
