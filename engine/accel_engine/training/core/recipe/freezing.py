"""Freezes layers of a model, and lets them train from an epoch on."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import keras

from accel_engine.errors import ModelError, PlanError
from accel_engine.keras_support.model_structure import has_custom_train_step, parameter_count, walk
from accel_engine.plan import Plan
from accel_engine.private_names.keras_names import all_layers
from accel_engine.text import suggestion
from accel_engine.words import numbers

ALL_BUT_HEAD = "all-but-head"
"""Stands for all layers but the last one with trainable weights."""

_LISTED = 4
"""Number of layers that a message names."""


@dataclass(frozen=True, slots=True)
class Freezing:
    """The frozen layers of a model."""

    before: tuple[tuple[Any, bool], ...]
    """Every frozen layer, a layer before those inside it, and whether it was trainable."""
    epoch: int | None
    """The epoch with which they start to train, from 1; ``None`` for never."""
    variables: tuple[keras.Variable, ...]
    """The variables that an optimizer needs a state for: of all layers that will ever train."""

    @property
    def notes(self) -> list[str]:
        """The frozen layers, for the user."""
        layers = list(self._still_frozen())
        return [f"frozen layers: {_described(layers)}"] if layers else []

    def is_due(self, epoch: int) -> bool:
        """Whether the frozen layers train in an epoch, from 1, but are still frozen."""
        return self.epoch is not None and epoch >= self.epoch and any(self._still_frozen())

    def end(self) -> str:
        """Let the layers train that did before; returns a message about it."""
        layers = list(self._still_frozen())
        for layer, trainable in self.before:
            layer.trainable = trainable
        weights = parameter_count(variable for layer in _outermost(layers) for variable in layer.trainable_variables)
        return f"the frozen layers start to train, with {weights:,} parameters: {_described(layers)}"

    def _still_frozen(self) -> Iterator[Any]:
        return (layer for layer, trainable in self.before if trainable and not layer.trainable)


def freeze(model: keras.Model, plan: Plan) -> Freezing:
    """Freeze layers as a plan says; before the optimizer is built.

    A frozen layer has ``trainable = False``, so that batch normalization uses its moving averages and keeps them.

    Args:
        model: Built.
        plan: The plan.

    Raises:
        PlanError: A name matches no layer, or no layer with weights remains.
        ModelError: The model has a custom ``train_step``, whose optimizers are not known, and layers that are to train
            later.
    """
    if not plan.freeze:
        return Freezing((), None, tuple(model.trainable_variables))
    if plan.unfreeze_epoch is not None and has_custom_train_step(model):
        reason = f"model {plan.model} has a custom train_step, whose optimizers would not know the weights of later"
        raise ModelError(f"{reason} epochs: leave out --unfreeze-epoch")
    every = tuple(model.trainable_variables)
    chosen = list(dict.fromkeys(layer for name in plan.freeze for layer in _matching(model, name, plan)))
    frozen = dict.fromkeys(each for layer in chosen for each in all_layers(layer))
    before = tuple((layer, bool(layer.trainable)) for layer in frozen)
    for layer in chosen:
        layer.trainable = False
    if not model.trainable_variables:
        raise PlanError("freeze", plan.freeze, "freezes all layers that have weights: nothing would be trained")
    kept = every if plan.unfreeze_epoch is not None else tuple(model.trainable_variables)
    return Freezing(before, plan.unfreeze_epoch, kept)


def head_of(model: keras.Model) -> Any:
    """The head of a model: in the order of its layers, also of nested models, the last with trainable weights."""
    leaves = [layer for layer, _ in walk(model) if not isinstance(layer, keras.Model)]
    return next((layer for layer in reversed(leaves) if layer.trainable_variables), None)


def _matching(model: keras.Model, name: str, plan: Plan) -> list[Any]:
    """The layers that a name or pattern stands for."""
    layers = list(dict.fromkeys(layer for layer, _ in walk(model)))
    if name == ALL_BUT_HEAD:
        if len(getattr(model, "outputs", None) or ()) > 1:
            raise PlanError("freeze", plan.freeze, "the model has several outputs, so several heads: name the layers")
        head = head_of(model)
        return [layer for layer in layers if layer is not head and not isinstance(layer, keras.Model)]
    found = [layer for layer in layers if fnmatchcase(layer.name, name)]
    if not found:
        names = [layer.name for layer in layers]
        raise PlanError("freeze", plan.freeze, f"no layer is named {name!r}; {suggestion(name, names)}")
    return found


def _outermost(layers: list[Any]) -> list[Any]:
    """Some layers without those that are inside others of them."""
    inner = {id(each) for layer in layers for each in all_layers(layer) if each is not layer}
    return [layer for layer in layers if id(layer) not in inner and layer.weights]


def _described(layers: list[Any]) -> str:
    """The names of some layers, without those inside others of them."""
    return numbers.listed((layer.name for layer in _outermost(layers)), _LISTED)
