"""Describes the model of a script; what cannot be read is unknown, and never raises."""

from typing import Any

from accel_engine import clock
from accel_engine.data.structure import ArraySpec
from accel_engine.events import ModelBuilt
from accel_engine.keras_support.losses import loss_name, output_activation, takes_logits
from accel_engine.keras_support.model_structure import parameter_count
from accel_engine.recording.error_guard import value_or_none
from accel_engine.recording.learning_rates import optimizers_in_use


def name(model: Any) -> str:
    """The model's name, or its class name if it has none."""
    model_name = value_or_none(lambda: model.name)
    return model_name if isinstance(model_name, str) and model_name else type(model).__name__


def strategy(model: Any) -> str:
    """The class name of the model's ``tf.distribute`` strategy; ``default`` if the user chose none."""
    strategy = value_or_none(lambda: model.distribute_strategy)  # only with the TensorFlow backend
    name = type(strategy).__name__
    return "default" if strategy is None or name.startswith("_") else name


def model_built(
    model: Any, *, epochs: int, steps: int | None, batch: int | None, series: tuple[str, ...]
) -> ModelBuilt:
    """Make the event that describes the model.

    Args:
        model: Compiled; it may not be built, e.g. with a ``train_step`` and no ``call``.
        epochs: Epochs of the whole run.
        steps: Steps per epoch.
        batch: Global batch size.
        series: Names of the recorded series.
    """
    replicas = value_or_none(lambda: int(model.distribute_strategy.num_replicas_in_sync)) or 1
    return ModelBuilt(
        time=clock.now(),
        parameters=value_or_none(lambda: _count(model, model.weights)),
        trainable=value_or_none(lambda: _count(model, model.trainable_weights)),
        layers=value_or_none(lambda: len(model.layers)),
        input_shape=value_or_none(lambda: _input_shape(model)),
        classes=None,
        examples=None,
        validation_examples=None,
        epochs=epochs,
        steps_per_epoch=steps,
        global_batch=batch,
        per_replica_batch=batch // replicas if batch else None,
        dropped_examples=0,
        replicas=replicas,
        optimizer=value_or_none(lambda: _optimizer(model)) or "",
        loss=value_or_none(lambda: loss_name(model.loss)) or "",
        series=series,
        precision=value_or_none(lambda: str(model.dtype_policy.name)) or "",
        xla=value_or_none(lambda: bool(model.jit_compile)),
        feed="own",
        outputs=value_or_none(lambda: _outputs_text(model)) or "",
        activation=value_or_none(lambda: output_activation(model)) or "",
        from_logits=value_or_none(lambda: takes_logits(model.loss)),
    )


def _count(model: Any, weights: Any) -> int | None:
    """Number of parameters in some weights; ``None`` while the model, or one of its layers, is not built.

    A model without a ``call`` is never built, but its inner models are.
    """
    whole = all(layer.built for layer in model.layers) and (model.built or model.layers)
    return parameter_count(weights) if whole else None


def _input_shape(model: Any) -> tuple[int, ...] | None:
    shape = model.input_shape
    if isinstance(shape, tuple) and shape and all(isinstance(side, int) for side in shape[1:]):
        return shape[1:]
    return None


def _outputs_text(model: Any) -> str:
    """The model's outputs for one example, such as ``float32 10``."""
    return ", ".join(str(ArraySpec(tuple(each.shape[1:]), str(each.dtype))) for each in model.outputs)


def _optimizer(model: Any) -> str:
    """The class name of the optimizer in use; several with their attributes: ``Adam (d_optimizer)``."""
    found = {name: type(optimizer).__name__ for name, optimizer in optimizers_in_use(model).items()}
    if len(found) == 1:
        return next(iter(found.values()))
    return ", ".join(f"{kind} ({name})" for name, kind in found.items())
