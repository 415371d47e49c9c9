"""Loads a trained model to predict other examples, without the data of its run where the run has recorded its form."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras

from accel_engine import data
from accel_engine.data.dataset import Dataset
from accel_engine.data.pixel_scaling import ValueRange, is_image
from accel_engine.data.structure import ArraySpec, Structure, flatten, has_texts, specs_from_json, specs_to_json
from accel_engine.errors import ModelError, PlanError
from accel_engine.keras_support.model_structure import model_input, model_output
from accel_engine.models.build_options import BuildOptions
from accel_engine.models.data_description import DataDescription
from accel_engine.models.exported_model import PROBABILITIES, categories, class_names, text_lookups
from accel_engine.models.model_call import call_model
from accel_engine.models.saved_model import load_saved
from accel_engine.models.traits import output_activation
from accel_engine.plan import Plan
from accel_engine.run import RunReader
from accel_engine.run.diagnostics import DataFormat, Diagnostics, InputSpec, read
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.run.history.chosen_checkpoint import chosen_step
from accel_engine.trained.prediction.outputs import OutputForm, output_forms
from accel_engine.trained.restored_model import restore_model
from accel_engine.training.core.changed_data import check_restorable
from accel_engine.training.core.run_scaling import decide_scaling
from accel_engine.training.core.task import BY_RANK, INPUTS, SEVERAL_OUTPUTS, Task
from accel_engine.training.evaluation.input_specs import input_spec_of
from accel_engine.training.reporting.data_formats import data_format_of, dataset_of, description_of

Outputs = Callable[[Structure], Structure]
"""Computes the outputs of a model for raw inputs."""


@dataclass(frozen=True, slots=True, eq=False)
class PredictingModel:
    """A trained model, and what its inputs and outputs mean.

    Attributes:
        name: The run's id, or the file's name.
        step: The step of the checkpoint with its weights; 0 for a file.
        plan: What it was trained with, without what only training needs; ``None`` for a file.
        form: The form of its data.
        inputs: The specs of an example's inputs.
        input_spec: How images become an example; ``None`` if they do not.
        outputs_of: Computes its outputs.
        outputs: What each of them means.
        categories: The categories of a table's inputs, where only the file of the model tells them.
        limits: The values of its outputs that are black and white, where it reconstructs its inputs.
        notes: Notes for the user.
    """

    name: str
    step: int
    plan: Plan | None
    form: DataFormat
    inputs: Structure
    input_spec: InputSpec | None
    outputs_of: Outputs
    outputs: tuple[OutputForm, ...]
    categories: Mapping[str, Sequence[str]]
    limits: tuple[float, float] | None
    notes: tuple[str, ...]


def of_run(directory: Path, checkpoint: str = "auto") -> PredictingModel:
    """The model of a run's checkpoint.

    Args:
        directory: The run's directory.
        checkpoint: See :func:`accel_engine.run.history.chosen_checkpoint.chosen_step`.

    Raises:
        AccelError: The model cannot be restored.
    """
    notes: list[str] = []
    step = chosen_step(directory, notes.append, checkpoint)
    recorded = read(directory)
    with closing(RunReader(directory)) as reader:
        plan = _plan(reader.info().plan_values, directory, recorded.format)
    dataset, description, build = _data_of(directory, plan, recorded)
    input_spec = recorded.input_spec or (input_spec_of(dataset, 1.0) if description is None else None)
    scales: list[float] = []

    def scale(model: keras.Model) -> float:
        scales.append(decide_scaling(plan, dataset, model, recorded.input_spec).factor)
        return scales[-1]

    model = restore_model(plan, dataset, scale, directory, step, description, build)
    form = recorded.format
    if form is None or description is None:
        form = data_format_of(dataset, plan, model.task.name)
    if form is None:
        raise ModelError(f"the data of run {directory.name} has statistics that are not finite")
    outputs = output_forms(
        model.output_specs,
        model.model.loss,
        form,
        model.task,
        dataset.spec.targets,
        getattr(model.model, "output_names", ()),
    )
    limits = (input_spec.low * scales[-1], input_spec.high * scales[-1]) if input_spec else None
    return PredictingModel(
        directory.name,
        step,
        plan,
        form,
        dataset.spec.inputs,
        input_spec if input_spec and input_spec.is_image else None,
        model.outputs,
        outputs,
        {},
        limits if model.task.encoding == INPUTS else None,
        tuple(notes),
    )


def _plan(values: Mapping[str, Any], directory: Path, form: DataFormat | None) -> Plan:
    """A run's plan; where its data is gone and not needed, with other data in its place.

    Raises:
        PlanError: The data is gone and needed.
    """
    try:
        return Plan.of_trained_run(values)
    except PlanError as error:
        if error.field != "data" or form is None or _needs_words(form, directory):
            raise
        return Plan.of_trained_run({**values, "data": "digits"})


def _needs_words(form: DataFormat, directory: Path) -> bool:
    """Whether only the data tells the words of a model of texts: they are in ``model.keras`` once the run has ended."""
    return has_texts(specs_from_json(form.inputs)) and trained_model(directory) is None


def _data_of(
    directory: Path, plan: Plan, recorded: Diagnostics
) -> tuple[Dataset, DataDescription | None, Callable[[], keras.Model] | None]:
    """A run's data without its examples, and how its model is built; all of the data where nothing else tells."""
    form, saved = recorded.format, trained_model(directory)
    if form is not None and not _needs_words(form, directory):
        dataset, options = (
            dataset_of(form),
            BuildOptions(custom_objects=plan.custom_objects, unsafe=plan.unsafe_load == "on"),
        )
        is_text = has_texts(dataset.spec.inputs)
        return dataset, description_of(form, plan), (lambda: load_saved(str(saved), options)) if is_text else None
    keras.utils.set_random_seed(plan.seed)  # as in training: a function may make its data at random
    dataset = data.load(plan.data, plan.data_options)
    check_restorable(dataset, plan, recorded)
    return dataset, None, None


def of_file(path: Path, custom_objects: str = "") -> PredictingModel:
    """The model of a file; exported classifiers have the names of their classes, others do not.

    Args:
        path: The file.
        custom_objects: Python file with its classes; empty for none.

    Raises:
        ModelError: It cannot be loaded, or has no inputs of a known shape.
    """
    model = load_saved(str(path), BuildOptions(custom_objects=custom_objects))
    if not getattr(model, "inputs", None):
        raise ModelError(
            f"the model in {path.name} is a class of its own, whose inputs are not in the file: call it on a "
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
        raise ModelError(f"{path.name} has no outputs of numbers")
    classes = class_names(model)
    targets = tuple(ArraySpec((), "int32") for _ in numbers)
    form = DataFormat(SEVERAL_OUTPUTS, "auto", kind, specs_to_json(inputs), None, ValueRange(), class_names=classes)
    names = _output_names(model)
    specs = tuple(keras.KerasTensor(model.outputs[place].shape, model.outputs[place].dtype) for place in numbers)
    task = Task(SEVERAL_OUTPUTS) if model.compiled else _task_of_uncompiled(model, numbers, names, classes)
    loss = model.loss if model.compiled else None
    outputs = output_forms(specs, loss, form, task, targets, [names[place] for place in numbers if place < len(names)])

    def outputs_of(raw: Structure) -> Structure:
        given = raw if isinstance(raw, dict) else dict.fromkeys(named, raw)
        taken = keras.tree.map_structure(lambda tensor: given[tensor.name], model_input(model))
        leaves = keras.tree.flatten(call_model(model, taken, training=False))
        return tuple(leaves[place] for place in numbers)

    return PredictingModel(path.name, 0, None, form, inputs, None, outputs_of, outputs, categories(model), None, ())


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
    activation, shape = output_activation(model), model.outputs[numbers[0]].shape
    is_dictionary = isinstance(model_output(model), dict)
    are_probabilities = is_dictionary and names[numbers[0]] == PROBABILITIES  # as of exported models
    if len(shape) in BY_RANK and (classes or activation == "softmax" or (are_probabilities and len(shape) > 2)):
        return Task(BY_RANK[len(shape)])
    if activation == "sigmoid" and len(shape) == 2:
        return Task("classification", binary=True) if shape[-1] == 1 else Task("multi-label")
    return Task("custom")


def _spec(tensor: keras.KerasTensor) -> ArraySpec:
    return ArraySpec(tuple(tensor.shape[1:]), str(tensor.dtype))
