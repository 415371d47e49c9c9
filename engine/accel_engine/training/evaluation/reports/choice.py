"""Chooses what is measured at a validation for the diagnostics, by the task of each output of the model."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.structure import ArraySpec, Structure, flatten, named_leaves
from accel_engine.keras_support.losses import Loss, loss_name, single_loss, takes_scores
from accel_engine.run.diagnostics import CustomReport, DataFormat, ValidationReport
from accel_engine.training.core.task import INPUTS, SEVERAL_OUTPUTS, Task
from accel_engine.training.evaluation.reports import classification
from accel_engine.training.evaluation.reports.example_views import InputViews
from accel_engine.training.evaluation.reports.forecast import ForecastBuilder
from accel_engine.training.evaluation.reports.output_report import CustomBuilder, ModelOutput, OutputReportBuilder
from accel_engine.training.evaluation.reports.regression import ReconstructionBuilder, RegressionBuilder
from accel_engine.training.evaluation.reports.sequence import SequenceBuilder
from accel_engine.training.evaluation.reports.validation_report import ValidationReportBuilder

CUSTOM_STEP_REASON = "the model has a custom train_step, so its outputs cannot be interpreted"
"""Why there is no report for such a model."""

_OUTPUT_BYTES = 1 << 28
"""About how many bytes the outputs of the examples that are shown may take while a report is built."""

_CLASSIFYING = ("crossentropy", "focal", "hinge")
_BY_RANK = {2: "classification", 3: "sequence"}


def named_outputs(outputs: Structure, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Each output of a model with its name: its path in a dictionary, or what the model calls it.

    Args:
        outputs: The outputs, or their specs.
        names: Names of the outputs, where they are a list.
    """
    for index, (path, leaf) in enumerate(named_leaves(outputs)):
        yield path if isinstance(outputs, dict) or index >= len(names) else names[index], leaf


def report_for(
    task: Task,
    dataset: Dataset,
    outputs: Structure,
    loss: Loss,
    *,
    scale: float = 1.0,
    limits: tuple[float, float] | None = None,
    output_names: Sequence[str] = (),
) -> ValidationReportBuilder:
    """Choose what is measured of each validation example, and how its report is built.

    Args:
        task: What the model learns.
        dataset: The data.
        outputs: The specs of the model's outputs, each with a ``shape`` that has the batch first; ``None`` if unknown.
        loss: The model's loss, as it was given to ``compile``.
        scale: The factor of raw inputs.
        limits: The raw values that are black and white in images; ``None`` to take them from the images.
        output_names: Names of the outputs, where they are a list.
    """
    leaves = list(named_leaves(outputs))
    shapes = tuple((name or "output", _described(leaf)) for name, leaf in leaves)
    views = InputViews.of(dataset, limits)
    stream = not isinstance(dataset.validation, Split)
    if task.name == "custom" or not leaves:
        own = single_loss(loss) if len(leaves) == 1 else None
        first = ModelOutput(tuple(leaves[0][1].shape) if leaves else (None,), views, own)
        reason = "the model computes its own loss, so its outputs cannot be interpreted"
        if own is not None:
            reason = f"the task of the loss {loss_name(own)} is unknown: set it with --task"
        return ValidationReportBuilder([CustomBuilder(first, shapes, reason)], stream=stream)
    builders = []
    for index, (name, leaf) in enumerate(named_outputs(outputs, output_names)):
        own = loss_of_output(loss, name, index)
        target = target_index(dataset.spec.targets, name, index)
        classes, columns = names_of_output(dataset, "" if len(leaves) == 1 else name, tuple(leaf.shape))
        output = ModelOutput(
            tuple(leaf.shape),
            views,
            own,
            logits=task.logits if len(leaves) == 1 else takes_scores(own),
            index=index,
            target=target,
            name=name if len(leaves) > 1 else "",
            class_names=classes,
            target_names=columns,
            units_of_targets=dataset.target_scaling if len(leaves) == 1 else None,
        )
        builders.append(_builder(task, dataset, output, shapes[index : index + 1], scale))
    return ValidationReportBuilder(builders, stream=stream)


def unmeasured_report(examples: int, outputs: Structure) -> ValidationReport:
    """The report of a model whose outputs are not known.

    Args:
        examples: Number of examples.
        outputs: The specs of the model's outputs.
    """
    shapes = tuple((name or "output", _described(leaf)) for name, leaf in named_leaves(outputs))
    return ValidationReport((CustomReport(examples=examples, reason=CUSTOM_STEP_REASON, shapes=shapes),))


def _builder(
    task: Task, dataset: Dataset, output: ModelOutput, shapes: Sequence[tuple[str, str]], scale: float
) -> OutputReportBuilder:
    targets = flatten(dataset.spec.targets)
    target = targets[output.target] if output.target is not None and output.target < len(targets) else None
    name = task.name
    if name == SEVERAL_OUTPUTS:
        name = output_task(output.loss, output.shape, target, dataset.kind)
    rank = len(output.shape)
    builder: OutputReportBuilder | None = None
    if name == "reconstruction":
        builder = ReconstructionBuilder(output, scale, targets_are_inputs=task.encoding == INPUTS or target is None)
    elif target is None:
        return CustomBuilder(output, shapes, "the data has no targets for the output")
    elif name == "classification" and rank == 2:
        builder = classification.ClassificationBuilder(output)
    elif name == "multi-label" and rank == 2:
        builder = classification.MultiLabelBuilder(output)
    elif name == "segmentation" and rank > 3:
        builder = classification.SegmentationBuilder(output)
    elif name == "sequence" and rank == 3:
        builder = SequenceBuilder(output, writes_text=_writes_text(dataset, output))
    elif name == "regression" and target.dtype != "string":
        builder = _of_numbers(dataset, output, target)
    if builder is None:
        reason = f"outputs of {_described(output)} cannot be compared with targets of {target} for the task {name}"
        return CustomBuilder(output, shapes, reason)
    builder.worst = min(builder.worst, max(4, _OUTPUT_BYTES // max(1, _bytes(output))))
    return builder


def output_task(loss: Loss, shape: tuple[int | None, ...], target: ArraySpec | None, kind: str) -> str:
    """The task of one of several outputs.

    Args:
        loss: Its loss.
        shape: Its shape, with the batch.
        target: The spec of its target.
        kind: The kind of an example of the data.
    """
    rank, name = len(shape), loss_name(loss)
    if loss is None or target is None:
        return "custom"
    if not any(word in name for word in _CLASSIFYING):
        return "reconstruction" if rank == 4 and kind == "images" else "regression"
    if "binary" in name and rank == 2 and (shape[-1] or 1) > 1:
        return "multi-label"
    if "binary" in name and rank > 2 and target.dtype.startswith("float"):
        return "reconstruction"
    return _BY_RANK.get(rank, "segmentation")


def _of_numbers(dataset: Dataset, output: ModelOutput, target: ArraySpec) -> OutputReportBuilder | None:
    """The builder of a regression; ``None`` if outputs and targets have different sizes."""
    if None in output.shape[1:] or None in target.shape:
        return ReconstructionBuilder(output) if len(output.shape) == len(target.shape) + 1 else None
    sides = [int(side or 1) for side in output.shape[1:]]
    if math.prod(sides) != math.prod(side or 1 for side in target.shape):
        return None
    if dataset.kind == "series" and len(sides) in (1, 2):
        return ForecastBuilder(output, dataset.spec.inputs)
    return RegressionBuilder(output)


def _writes_text(dataset: Dataset, output: ModelOutput) -> bool:
    """Whether a model predicts the tokens that it takes."""
    inputs = dataset.spec.inputs
    is_sequence = isinstance(inputs, ArraySpec) and len(inputs.shape) == 1 and "int" in inputs.dtype
    own = not dataset.class_names or dataset.class_names == dataset.vocabulary
    return is_sequence and own and 0 < len(dataset.vocabulary) <= output.units


def names_of_output(
    data: Dataset | DataFormat, name: str, shape: tuple[int | None, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of an output's classes, if it predicts classes, and of its numbers; empty where they are unknown.

    Args:
        data: Has the names.
        name: The output's name; empty if it is the only one.
        shape: Its shape, with the batch.
    """
    if not name:
        return data.class_names, data.target_names
    width = max(shape[-1] or 0 if len(shape) > 1 else 1, 2)  # a single unit is for the second of two classes
    classes = data.class_names if len(data.class_names) == width else data.target_classes.get(name, ())
    return classes, (name,) if name in data.target_names else ()


def loss_of_output(loss: Loss, name: str, index: int) -> Loss:
    """The loss of one output."""
    if isinstance(loss, dict):
        return loss.get(name) if name in loss or len(loss) > 1 else single_loss(loss)
    if isinstance(loss, list | tuple):
        return loss[index] if index < len(loss) else None
    return loss


def target_index(targets: Structure, name: str, index: int) -> int | None:
    """The place of an output's target among the arrays of all targets."""
    if isinstance(targets, dict) and name in targets:
        return sorted(targets).index(name)
    return index if index < len(flatten(targets)) else None


def _described(output: Any) -> str:
    """The shape of an output without the batch, such as ``float32 28x28x1``."""
    dtype = getattr(output, "dtype", "float32")
    return str(ArraySpec(tuple(output.shape[1:]), str(getattr(dtype, "name", dtype))))


def _bytes(output: ModelOutput) -> int:
    """Bytes of an output of one example; sides of any size count as 256."""
    return 4 * math.prod(256 if side is None else side for side in output.shape[1:])
