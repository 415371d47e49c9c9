"""Private names of Keras. Does not import TensorFlow, as scripts may use another backend."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from inspect import signature
from typing import Any
from unittest.mock import patch

import keras


def all_layers(model: Any) -> Iterator[Any]:
    """A layer and all layers inside it.

    No public name gives the layers that a custom layer holds; without the private one, they are missing.
    """
    if flatten := getattr(model, "_flatten_layers", None):
        yield from flatten()
        return
    yield model
    for layer in getattr(model, "layers", ()):
        yield from all_layers(layer)


def reset_names() -> None:
    """Let Keras name layers as if none had been created yet, such as ``dense`` and ``dense_1``.

    The public ``clear_session`` also forgets the random seed and the precision. Without the private name, the names
    depend on the models that were built before in the same process.
    """
    with suppress(ImportError):
        from keras.src.utils.naming import reset_uids

        reset_uids()


def constructor_arguments(layer: Any) -> dict[str, Any]:
    """The arguments that a layer was made with, with defaults, where all are numbers, texts or ``None``; else empty.

    Read without a call of the layer's own code. No public name gives them.
    """
    return dict(getattr(vars(layer).get("_auto_config"), "config", {}))


def schedule_of(optimizer: Any) -> Any:
    """An optimizer's learning-rate schedule; ``None`` if it has none, or where Keras hides it.

    The public ``learning_rate`` is the current value.
    """
    schedule = getattr(optimizer, "_learning_rate", None)
    return schedule if isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule) else None


def iterations_of(optimizer: Any) -> Any:
    """The variable with the argument of an optimizer's schedule.

    With gradient accumulation, the public ``iterations`` counts updates, and the schedule each batch.
    """
    return getattr(optimizer, "_iterations", optimizer.iterations)


def slots_of(optimizer: Any, variable: Any) -> dict[str, Any] | None:
    """The variables that Keras' Adam or SGD keeps for a weight, by ``momentum`` and ``velocity``.

    Without a private name ``None``: then the optimizer updates its weights itself.
    """
    place = getattr(optimizer, "_get_variable_index", None)
    names = {"momentum": ("_momentums", "momentums"), "velocity": ("_velocities",)}
    lists = {
        name: next((found for each in own if (found := getattr(optimizer, each, None))), None)
        for name, own in names.items()
    }
    return None if place is None else {name: each[place(variable)] for name, each in lists.items() if each}


def averages_of(model: Any) -> list[tuple[keras.Variable, keras.Variable]]:
    """The weights of a model with the moving averages of its optimizer; empty without ``use_ema``.

    Publicly, an optimizer only replaces the weights by their averages.
    """
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    if not getattr(optimizer, "use_ema", False):
        return []
    averages = getattr(optimizer, "_model_variables_moving_average", ())
    variables = getattr(optimizer, "_trainable_variables", ())
    return [(variable, average) for variable, average in zip(variables, averages, strict=True) if average is not None]


def slots_by_weight(optimizer: Any) -> list[tuple[int, keras.Variable]]:
    """The variables that an optimizer keeps for its weights, each with the weight's index.

    Each optimizer has other private names for the lists of them. Without the list of weights, the result is empty.
    """
    weights = getattr(optimizer, "_trainable_variables", None) or ()
    others = {id(each) for each in (*weights, iterations_of(optimizer))}  # also in a list of all its variables
    lists = [each for each in vars(optimizer).values() if isinstance(each, list) and len(each) == len(weights)]
    return [
        (index, each)
        for own in lists
        if not any(id(each) in others for each in own)
        for index, each in enumerate(own)
        if isinstance(each, keras.Variable)
    ]


SUM_OF_GRADIENTS = "_all_reduce_sum_gradients"
"""The method of an optimizer that sums gradients over replicas; without it, all replicas have the sums of all."""

UPDATE_OF_AVERAGES = "_update_model_variables_moving_average"
"""The method of an optimizer that updates its moving averages; without it, they are updated on the weights' device."""


def loss_takes_logits(loss: Any) -> bool:
    """Whether a loss expects logits. The wrapper of a loss function hides its arguments."""
    options = getattr(loss, "_fn_kwargs", {})
    return bool(getattr(loss, "from_logits", False) or options.get("from_logits", False))


def compiled_metrics(model: Any) -> tuple[Any, Any]:
    """The metrics and weighted metrics that a model was compiled with, to compile it again with another loss."""
    compiled = getattr(model, "_compile_metrics", None)
    return getattr(compiled, "_user_metrics", None), getattr(compiled, "_user_weighted_metrics", None)


def output_losses(model: Any) -> list[Any]:
    """The metrics in which Keras keeps the loss of each of several outputs.

    The public ``metrics`` have the user's, too, which may have any name.
    """
    return list(getattr(getattr(model, "_compile_loss", None), "metrics", ()))


@contextmanager
def changed_losses(model: Any, change: Callable[[Any], Callable[..., Any]]) -> Iterator[None]:
    """Compute the losses of a compiled model's outputs in another way, once they are built.

    The public ``loss`` is not always in the structure of the outputs. Without the private name, they are not changed.

    Args:
        model: The model.
        change: Gives the function that takes the place of a loss of Keras' classes.
    """
    compiled: Any = getattr(model, "_compile_loss", None)
    own = getattr(compiled, "_flat_losses", None)
    if not own:
        yield
        return
    compiled._flat_losses = [each._replace(loss=change(each.loss)) for each in own]
    try:
        yield
    finally:
        compiled._flat_losses = own


def replace_loss(model: Any, loss: keras.losses.Loss) -> None:
    """Replace the loss of a compiled model with a single output; all else that it was compiled with stays.

    Without the private name, its loss weights and how ``fit`` executes it are lost. A model's own ``compile`` is not
    called, as it may need other arguments.
    """
    metrics, weighted = compiled_metrics(model)
    config = getattr(getattr(model, "_compile_config", None), "config", None) or {}
    same = {"metrics": metrics, "weighted_metrics": weighted, **config, "optimizer": model.optimizer}
    structure = keras.tree.map_structure(lambda _: loss, model.loss)  # loss weights may be by name of the output
    keras.Model.compile(model, **{**same, "loss": structure})


def replace_optimizer(model: Any, optimizer: keras.Optimizer) -> None:
    """Replace the optimizer of a compiled model, also in what is saved with it.

    Without the private name, a saved model has the optimizer that it was compiled with.
    """
    model.optimizer = optimizer
    config = getattr(getattr(model, "_compile_config", None), "config", None)
    if isinstance(config, dict) and "optimizer" in config:
        config["optimizer"] = optimizer


def unseeded_state() -> tuple[keras.Variable, ...]:
    """The state of the global random generator, which this creates if no layer has used it yet.

    Without the private name it is not saved, and a continued run has other randomness.
    """
    generator = unseeded_generator()
    return () if generator is None else (generator.state,)


def unseeded_generator() -> Any:
    """The global random generator of this thread, which layers without a seed use; ``None`` where inaccessible."""
    with suppress(ImportError):
        from keras.src.random.seed_generator import global_seed_generator

        return global_seed_generator()
    return None


def use_unseeded_generator(generator: Any) -> None:
    """Let this thread use the global random generator of another thread, see :func:`unseeded_generator`.

    Each thread has its own. Without the private name, a step that is traced here has other random numbers.
    """
    with suppress(ImportError):
        from keras.src.backend.common.global_state import set_global_attribute
        from keras.src.random.seed_generator import GLOBAL_SEED_GENERATOR

        set_global_attribute(GLOBAL_SEED_GENERATOR, generator)


@contextmanager
def replaced_get_file(function: Callable[..., Any]) -> Iterator[None]:
    """Let ``keras.applications`` call a function for a file of weights, with ``get_file`` before its arguments.

    They call the module's, which patching the public ``keras.utils.get_file`` does not change. Without the private
    name, Keras downloads the weights as ever.
    """
    with ExitStack() as patches:
        with suppress(ImportError):
            from keras.src.utils import file_utils

            patches.enter_context(patch.object(file_utils, "get_file", partial(function, file_utils.get_file)))
        yield


@contextmanager
def replaced_draws(
    replace: Callable[[str, Callable[..., Any]], Callable[..., Any]], names: tuple[str, ...]
) -> Iterator[None]:
    """Replace the functions with which all layers and ``keras.random`` draw random numbers, in the TensorFlow backend.

    Layers do not call the public ``keras.random``. Without the private name, nothing is replaced.

    Args:
        replace: Returns the function to call instead of a function, from its name and itself.
        names: Names of the functions, such as ``uniform``.
    """
    with ExitStack() as patches:
        with suppress(ImportError):
            from keras.src.backend.tensorflow import random

            for name in names:
                if original := getattr(random, name, None):
                    patches.enter_context(patch.object(random, name, replace(name, original)))
        yield


LayerLosses = list[tuple[Any, list[Any]]]
"""Layers, each with the losses that ``add_loss`` and regularizers gave it."""


def layer_losses(model: Any) -> LayerLosses:
    """The losses of a model and its layers, from the last call; of those that have any."""
    return [(layer, losses) for layer in all_layers(model) if (losses := list(layer.losses))]


@contextmanager
def kept_losses(model: Any, losses: LayerLosses | None = None) -> Iterator[None]:
    """Keep the losses that ``add_loss`` and regularizers gave a model's layers, inside a ``keras.StatelessScope``.

    Keras hides them there. Without the private name they are missing, so a loss is then computed outside of the scope:
    see :func:`keeps_losses`.

    Args:
        model: The model.
        losses: Its :func:`layer_losses`, if it was called in another scope.
    """
    layers = layer_losses(model) if losses is None else losses
    for layer, own in layers:
        layer.__dict__["_losses_override"] = own  # not with setattr: Keras tracks what is assigned to its layers
    try:
        yield
    finally:
        for layer, _ in layers:
            layer.__dict__["_losses_override"] = []


def keeps_losses(model: Any) -> bool:
    """Whether :func:`kept_losses` has an effect."""
    return "_losses_override" in vars(model)


def clear_losses(layer: Any) -> None:
    """Forget the losses that ``add_loss`` gave a layer, as Keras does before it calls a model.

    Without the private name, a layer with ``add_loss`` fails in a stage of a pipeline.
    """
    if clear := getattr(layer, "_clear_losses", None):
        clear()


def mask_of(outputs: Any) -> Any:
    """The mask that layers such as ``Embedding`` give to a tensor; ``None`` if there is none.

    Keras' own losses read it. Without the private name, masked tokens count in diagnostics.
    """
    return getattr(outputs, "_keras_mask", None)


def set_mask(tensor: Any, mask: Any) -> None:
    """Give a tensor the mask that :func:`mask_of` and Keras' layers read."""
    tensor._keras_mask = mask


def unautocast_value(variable: keras.Variable) -> Any:
    """The value of a variable in its own dtype, also inside the call of a layer with mixed precision.

    The public ``value`` is cast there. Without the private name, weights of layers in float32 are rounded.
    """
    with suppress(ImportError):
        from keras.src.backend import AutocastScope

        with AutocastScope(None):
            return keras.ops.convert_to_tensor(variable.value)
    return keras.ops.convert_to_tensor(variable.value)


def call_context_training(layer: Any) -> Any:
    """The argument ``training`` that layers without one inherit from the layers that call them.

    Without the private name, it is as in a training step.
    """
    get = getattr(layer, "_get_call_context", None)
    return True if get is None else getattr(get(), "training", None)


def sublayers(layer: Any) -> list[Any]:
    """The layers that a layer holds itself, without those inside them; without the private name, a model's only."""
    if flatten := getattr(layer, "_flatten_layers", None):
        return list(flatten(include_self=False, recursive=False))
    return list(getattr(layer, "layers", ()))


def layer_of_loss(layers: Iterable[Any], loss: Any) -> Any:
    """The layer that added a loss inside a ``keras.StatelessScope``; without the private name, the first one.

    Then a model adds its losses up in another order.
    """
    every = [each for layer in layers for each in all_layers(layer) if not isinstance(each, keras.Model)]
    return next((layer for layer in every if id(loss) in getattr(layer, "_loss_ids", ())), every[0])


@contextmanager
def whole_configs(model: Any) -> Iterator[None]:
    """Let Keras save the arguments of its losses and metrics that it forgets, for a block that saves a model.

    Keras 3.15 saves neither ``delta`` of ``Huber`` nor ``axis`` of ``CosineSimilarity`` and of
    ``SparseCategoricalCrossentropy`` (keras-team/keras#23286), and loads their defaults. No public name gives them.
    """
    given = getattr(getattr(model, "_compile_config", None), "config", {})
    things = keras.tree.flatten([given.get(name) for name in ("loss", "metrics", "weighted_metrics")])
    with ExitStack() as stack:
        for thing in things:
            if lost := _lost_arguments(thing):
                config = {**thing.get_config(), **lost}
                stack.enter_context(patch.object(thing, "get_config", lambda config=config: config))
        yield


def _lost_arguments(thing: Any) -> dict[str, Any]:
    """The arguments of a loss or metric of Keras that its configuration does not have."""
    arguments = getattr(thing, "_fn_kwargs", None)
    if not arguments or not type(thing).__module__.startswith("keras."):
        return {}
    known, config = signature(type(thing)).parameters, thing.get_config()
    return {name: value for name, value in arguments.items() if name in known and name not in config}
