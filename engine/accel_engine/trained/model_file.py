"""Describes the inputs and outputs of a model file, without its data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import keras

from accel_engine.data.pixel_scaling import ValueRange, is_image
from accel_engine.data.structure import ArraySpec, Structure, flatten, has_texts, specs_to_json
from accel_engine.errors import ModelError
from accel_engine.keras_support.model_structure import model_input, model_output
from accel_engine.models.exported_model import PROBABILITIES, class_names, text_lookups
from accel_engine.models.model_call import call_model
from accel_engine.models.traits import last_activation
from accel_engine.run.diagnostics import DataFormat
from accel_engine.training.core.task import BY_RANK, SEVERAL_OUTPUTS, Task


@dataclass(frozen=True, slots=True, eq=False)
class FileSignature:
    """The inputs, outputs and task of a model file."""

    form: DataFormat
    """The form of the data that it takes, each input by its name if there are several."""
    task: Task
    """What it learned, as far as its outputs tell."""
    outputs: Structure
    """The specs of its outputs of numbers, with the batch."""
    output_names: Sequence[str]
    """Their names."""
    outputs_of: Callable[[Structure], Structure]
    """Computes them, from raw inputs."""


def describe_file(model: keras.Model, file: str) -> FileSignature:
    """Describe a model; exported classifiers have the names of their classes, others do not.

    Args:
        model: The model.
        file: The name of its file, for errors.

    Raises:
        ModelError: The model has no inputs of a known shape, or no outputs of numbers.
    """
    if not getattr(model, "inputs", None):
        raise ModelError(
            f"the model in {file} is a custom class, whose inputs are not in the file: call it on a "
            "keras.Input, and save keras.Model(input, model(input))"
        )
    named = {tensor.name: _spec(tensor) for tensor in model.inputs}
    inputs: Structure = named if len(named) > 1 else next(iter(named.values()))
    is_table = all(spec.shape == (1,) for spec in named.values()) and (len(named) > 1 or not has_texts(inputs))
    if is_table:
        inputs = named
    sides = tuple(side or 2 for side in flatten(inputs)[0].shape)
    kind = "table" if is_table else "text" if has_texts(inputs) else "images" if is_image(sides) else "arrays"
    texts = [layer.output for layer in text_lookups(model)]
    numbers = [place for place, tensor in enumerate(model.outputs) if not any(tensor is each for each in texts)]
    if not numbers:
        raise ModelError(f"{file} has no outputs of numbers")
    classes, names = class_names(model), _output_names(model)
    targets = specs_to_json([ArraySpec((), "int32") for _ in numbers])
    form = DataFormat(SEVERAL_OUTPUTS, "auto", kind, specs_to_json(inputs), targets, ValueRange(), class_names=classes)
    specs = tuple(keras.KerasTensor(model.outputs[place].shape, model.outputs[place].dtype) for place in numbers)
    task = Task(SEVERAL_OUTPUTS) if model.compiled else _task_of_uncompiled(model, numbers, names, classes)

    def outputs_of(raw: Structure) -> Structure:
        given = raw if isinstance(raw, dict) else dict.fromkeys(named, raw)
        taken = keras.tree.map_structure(lambda tensor: given[tensor.name], model_input(model))
        leaves = keras.tree.flatten(call_model(model, taken, training=False))
        return tuple(leaves[place] for place in numbers)

    return FileSignature(form, task, specs, [names[place] for place in numbers if place < len(names)], outputs_of)


def _output_names(model: keras.Model) -> list[str]:
    """The names of the outputs: their keys where they are a dictionary, as in exported models."""
    output = model_output(model)
    is_flat = isinstance(output, dict) and len(output) == len(model.outputs)
    return sorted(output) if is_flat else list(getattr(model, "output_names", ()))


def _task_of_uncompiled(
    model: keras.Model, numbers: Sequence[int], names: Sequence[str], classes: Sequence[str]
) -> Task:
    """The task by the name and the activation of the only output of numbers; otherwise its outputs are numbers."""
    if len(numbers) != 1:
        return Task("custom")
    activation, shape = last_activation(model), model.outputs[numbers[0]].shape
    is_dictionary = isinstance(model_output(model), dict)
    are_probabilities = is_dictionary and names[numbers[0]] == PROBABILITIES  # as exported models have
    if len(shape) in BY_RANK and (classes or activation == "softmax" or (are_probabilities and len(shape) > 2)):
        return Task(BY_RANK[len(shape)])
    if activation == "sigmoid" and len(shape) == 2:
        return Task("classification", binary=True) if shape[-1] == 1 else Task("multi-label")
    return Task("custom")


def _spec(tensor: keras.KerasTensor) -> ArraySpec:
    return ArraySpec(tuple(tensor.shape[1:]), str(tensor.dtype))
