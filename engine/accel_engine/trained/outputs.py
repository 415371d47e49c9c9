"""The meaning of a model's outputs: probabilities of classes, numbers in their units, a class per token or pixel."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.data_options import OF_CLASSES
from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import ArraySpec, Structure, flatten
from accel_engine.errors import ModelError
from accel_engine.keras_support.losses import Loss, takes_scores
from accel_engine.run.diagnostics import DataFormat
from accel_engine.training.core.task import SEVERAL_OUTPUTS, Task, probabilities_of
from accel_engine.training.evaluation.reports.choice import (
    loss_of_output,
    named_outputs,
    names_of_output,
    output_task,
    target_index,
)
from accel_engine.training.reporting.data_formats import standardization

OF_PARTS = ("sequence", "segmentation")
"""Tasks with a class per token or pixel."""


@dataclass(frozen=True, slots=True, eq=False)
class OutputForm:
    """The meaning of an output: its task, classes or units."""

    name: str
    """Its name; empty if it is the only one."""
    task: Task
    """The task that it was trained for."""
    classes: tuple[str, ...] = ()
    """Names of its classes."""
    columns: tuple[str, ...] = ()
    """Names of its numbers."""
    units: Standardization | None = None
    """How its targets were standardised; ``None`` if they were not."""
    shape: tuple[int, ...] | None = None
    """The shape of an example's target; ``None`` if it is unknown or of any size."""


@dataclass(slots=True, eq=False)
class PredictedOutput:
    """The predictions of an output."""

    values: list[npt.NDArray[Any]] = field(default_factory=list)
    """Probabilities, numbers or classes, a batch each."""
    chances: list[npt.NDArray[np.float32]] = field(default_factory=list)
    """The probability of each class in ``values`` of tokens and pixels."""

    def add(self, form: OutputForm, output: Any, *, of_windows: bool = False) -> None:
        """Add the outputs for a batch, ``[batch, ...]``.

        Args:
            form: What they mean.
            output: The outputs.
            of_windows: Whether the batch is one example, whose prediction is the mean of its windows': the mean of
                their probabilities, or of their numbers.

        Raises:
            ModelError: The outputs are texts.
        """
        task, array = form.task.name, tf.convert_to_tensor(output)
        if array.dtype == tf.string:
            raise ModelError(f"the output {form.name} of the model is text: only numbers can be predicted")
        if task in OF_CLASSES or task in OF_PARTS:
            array = probabilities_of(array, form.task)
        elif array.dtype in (tf.float16, tf.bfloat16):
            array = tf.cast(array, tf.float32)
        values = (tf.reduce_mean(array, 0, keepdims=True) if of_windows else array).numpy()
        if task in OF_CLASSES:
            self.values.append(values.reshape(len(values), -1))
            return
        if task in OF_PARTS:
            self.values.append(values.argmax(-1).astype(np.int32))
            self.chances.append(values.max(-1))
            return
        if task == "regression" and form.shape is not None and values[0].size == math.prod(form.shape):
            values = values.reshape(len(values), *form.shape)
        self.values.append(values if form.units is None else form.units.restore(values))


def output_forms(
    specs: Structure, loss: Loss, form: DataFormat, task: Task, targets: Structure, names: Sequence[str] = ()
) -> tuple[OutputForm, ...]:
    """The meaning of each output of a model.

    Args:
        specs: The specs of the outputs, with the batch.
        loss: The model's loss.
        form: The run's data.
        task: What the model learned.
        targets: The specs of an example's targets.
        names: The names of the outputs, where they are a list.
    """
    return tuple(_forms(specs, loss, form, task, targets, names))


def _forms(
    specs: Structure, loss: Loss, form: DataFormat, task: Task, targets: Structure, names: Sequence[str]
) -> Iterator[OutputForm]:
    leaves = list(named_outputs(specs, names))
    known = flatten(targets)
    for index, (name, leaf) in enumerate(leaves):
        place = target_index(targets, name, index)
        target = known[place] if place is not None else None
        units = int(leaf.shape[-1] or 0) if len(leaf.shape) > 1 else 1
        own = task
        if task.name == SEVERAL_OUTPUTS:
            part = loss_of_output(loss, name, index)
            found = output_task(part, tuple(leaf.shape), target, form.kind)
            own = Task(found, logits=takes_scores(part), binary=units == 1)
        single = len(leaves) == 1
        width = 2 if own.binary else units
        classes, columns = names_of_output(form, "" if single else name, tuple(leaf.shape))
        if own.name in OF_PARTS and not classes and len(form.vocabulary) == width:
            classes = form.vocabulary
        yield OutputForm(
            "" if single else name or f"output {index}",
            own,
            (*classes, *map(str, range(len(classes), width))) if own.name in (*OF_CLASSES, *OF_PARTS) else (),
            columns,
            standardization(form.target_units) if single else None,
            _whole(target),
        )


def _whole(target: ArraySpec | None) -> tuple[int, ...] | None:
    if target is None or None in target.shape:
        return None
    return tuple(side or 0 for side in target.shape)
