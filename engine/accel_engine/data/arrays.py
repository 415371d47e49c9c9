"""Makes a dataset of arrays: checks them, converts inputs and targets, and splits them; without TensorFlow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.array_checks import check_parts, finite_rows
from accel_engine.data.changes import Change
from accel_engine.data.data_options import OF_CLASSES, DataOptions
from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.pixel_scaling import ValueRange, is_image
from accel_engine.data.splits import split_rows, without_shares
from accel_engine.data.standardization import precision_warnings
from accel_engine.data.structure import ArraySpec, Batch, Structure, map_structure, named_leaves
from accel_engine.data.targets import Known, TargetForm, kind_text, number_scaling, standardized_change, understand
from accel_engine.errors import DataError

MIN_PIXELS = 8
"""Arrays ``[n, height, width]`` of bytes are images if both sides have at least this size."""

NAMES = {
    "train": Batch("x_train", "y_train", "sample_weight_train"),
    "validation": Batch("x_val", "y_val", "sample_weight_val"),
    "test": Batch("x_test", "y_test", "sample_weight_test"),
}
"""Names of the parts of each split in messages."""


def make_dataset(
    name: str,
    parts: Mapping[str, Batch],
    options: DataOptions,
    *,
    class_names: Sequence[str] = (),
    images: bool = False,
    add_channels: bool = True,
    names: Mapping[str, Batch] = NAMES,
) -> Dataset:
    """Make a dataset of arrays.

    Args:
        name: The dataset's name, for titles.
        parts: The structures of arrays, ``[n, ...]``, of ``train`` and optionally ``validation`` and ``test``. Where
            there is no validation split, or a share for tests is given, training examples are split.
        options: The task, how to split, and what to do about values that are not finite.
        class_names: One per class; the class indices by default.
        images: Whether the source declares the inputs to be images.
        add_channels: Whether bytes ``[n, height, width]`` get a channel axis, as images.
        names: Names of the parts of each split, for messages.

    Raises:
        DataError: The arrays cannot be trained on.
        PlanError: The arrays cannot be split as the plan says.
    """
    check_parts(parts, names)
    train = parts["train"]
    values = input_range(train.inputs, declared=images, add_channels=add_channels)
    y, x = (Known.of(part) if isinstance(part, np.ndarray) else None for part in (train.targets, train.inputs))
    form = target_form(y, x, options.task, class_names, names["train"].targets)
    changes: list[Change] = []
    notes = [*_input_notes(train.inputs, names["train"].inputs, images or add_channels, images), *form.notes]
    ready: dict[str, Batch] = {}
    for split, part in parts.items():
        converted_part = converted(part, form, names[split], images=images, add_channels=add_channels)
        ready[split], left_out = finite_rows(converted_part, names[split], options)
        changes += left_out
        if split != "train":
            ready[split] = _typed_like(ready[split], ready["train"])
    splits, split_notes = _split(ready, form, options)
    scaling = number_scaling(splits["train"].targets) if form.is_precise else None
    if scaling is not None:
        splits = {
            split: replace(part, targets=part.targets if part.targets is None else scaling.apply(part.targets))
            for split, part in splits.items()
        }
        changes.append(standardized_change(names["train"].targets))
    classes = tuple(class_names) or form.names or tuple(map(str, range(form.classes)))
    return Dataset(
        name,
        splits["train"],
        splits.get("validation"),
        splits.get("test"),
        class_names=classes,
        task=form.task,
        kind=example_kind(splits["train"].spec.inputs, values),
        target_scaling=scaling,
        value_range=values,
        notes=(*notes, *split_notes),
        changes=tuple(changes),
        warnings=precision_warnings(named_leaves(train.inputs, names["train"].inputs)),
    )


def input_range(inputs: Structure, *, declared: bool = False, add_channels: bool = True) -> ValueRange:
    """The value range of arrays of inputs, or of an array's header, from type and shape alone."""
    if isinstance(inputs, dict | tuple | list) or inputs is None:
        return ValueRange(declared=declared)
    dtype, shape = inputs.dtype, tuple(inputs.shape)
    example = example_shape(shape, dtype, images=declared) if add_channels or declared else shape[1:]
    return replace(ValueRange.of_array(dtype.name, example), declared=declared)


def example_shape(shape: tuple[int, ...], dtype: np.dtype[Any], *, images: bool = False) -> tuple[int, ...]:
    """Shape of one example of an array, after adding a channel axis to images without one."""
    pixels = dtype in (np.uint8, np.uint16) and len(shape) == 3 and min(shape[1:]) >= MIN_PIXELS
    return (*shape[1:], 1) if len(shape) == 3 and (pixels or images) else shape[1:]


def example_kind(inputs: Structure, values: ValueRange) -> str:
    """The kind of an example, by the spec of its inputs."""
    if not isinstance(inputs, ArraySpec):
        return "arrays"
    if values.pixels:
        return "images"
    if inputs.dtype == "string":
        return "text"
    sides = tuple(side or MIN_PIXELS for side in inputs.shape)
    return "images" if is_image(sides) and min(sides[:2]) >= MIN_PIXELS else "arrays"


def target_form(y: Known | None, x: Known | None, task: str, class_names: Sequence[str], name: str) -> TargetForm:
    """The meaning of the training targets, with the classes that the user named.

    Raises:
        DataError: The targets do not fit the task or the class names.
    """
    if class_names and task == "auto" and y is not None and y.dtype.kind in "bui" and y.shape[1:] in ((), (1,)):
        task = "classification"
    form = understand(y, x, task, name)
    is_vector = form.task in OF_CLASSES and not form.labels
    if class_names and (form.classes > len(class_names) or (is_vector and form.classes < len(class_names))):
        raise DataError(f"{name} has {form.classes} classes, but there are {len(class_names)} class names")
    return replace(form, classes=len(class_names)) if class_names and form.classes else form


def converted(part: Batch, form: TargetForm, names: Batch, *, images: bool, add_channels: bool) -> Batch:
    """Convert raw arrays to those that are trained on.

    Raises:
        DataError: The type of an array, or a label, cannot be used.
    """
    single = isinstance(part.inputs, np.ndarray)

    def convert_input(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        array = _input(array, name)
        if not single or not (images or add_channels):
            return array
        return array.reshape(len(array), *example_shape(array.shape, array.dtype, images=images))

    return Batch(
        _each(part.inputs, names.inputs, convert_input),
        _each(part.targets, names.targets, form.convert),
        _each(part.weights, names.weights, _weights),
    )


def _each(structure: Structure, name: str, convert: Callable[[Any, str], Any]) -> Structure:
    """Convert each array of a structure, with its name."""
    if structure is None:
        return None
    if isinstance(structure, dict):
        return {key: _each(part, f"{name}/{key}", convert) for key, part in structure.items()}
    if isinstance(structure, tuple | list):
        return tuple(_each(part, f"{name}/{index}", convert) for index, part in enumerate(structure))
    return convert(structure, name)


def _input(x: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    if x.dtype.kind == "f":
        with np.errstate(over="ignore"):  # values too large for float32 become infinite, and are found later
            return np.ascontiguousarray(x, np.float32)
    if x.dtype.kind == "T" or (x.dtype.kind == "O" and all(isinstance(item, str | bytes) for item in x.flat)):
        return x.astype(object)
    if x.dtype.kind not in "buiUS":
        raise DataError(f"{name} holds {kind_text(x.dtype)}; examples must be numbers or text")
    return np.ascontiguousarray(x)


def _weights(weights: npt.NDArray[Any], name: str) -> npt.NDArray[np.float32]:
    if weights.dtype.kind not in "buif":
        raise DataError(f"{name} holds {kind_text(weights.dtype)}; sample weights must be numbers")
    return weights.astype(np.float32)


def _typed_like(part: Batch, train: Batch) -> Batch:
    """Give arrays the types of the training split, such as int64 for int32."""

    def typed(array: npt.NDArray[Any], like: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array if array.dtype.kind in "OUS" else array.astype(like.dtype, copy=False)

    inputs, targets = (map_structure(typed, own, like) for own, like in zip(part[:2], train[:2], strict=True))
    return Batch(inputs, targets, part.weights)


def _split(parts: Mapping[str, Batch], form: TargetForm, options: DataOptions) -> tuple[dict[str, Split], list[str]]:
    """Split the training examples where there is no validation split, or a share for tests is given."""
    splits = {split: Split(*part) for split, part in parts.items()}
    options = without_shares(options, validation="validation" in parts, test="test" in parts)
    if not options.validation_split and not options.test_split:
        return splits, []
    whole, notes = splits["train"], []
    rows = split_rows(len(whole), options, _labels(whole.targets, form))
    for split, own in rows._asdict().items():
        if split == "train":
            splits[split] = Split(*whole.take(own))
        elif len(own):
            splits.setdefault(split, Split(*whole.take(own)))
        if split != "train" and len(own):
            notes.append(f"{split} split: {len(own)} of {len(whole)} examples")
    return splits, notes


def _labels(targets: Structure, form: TargetForm) -> npt.NDArray[Any] | None:
    """The class of each example, for a stratified split."""
    if form.task != "classification":
        return None
    return targets if form.labels else targets.argmax(axis=1)


def _input_notes(inputs: Structure, name: str, add_channels: bool, declared: bool) -> list[str]:
    if not isinstance(inputs, np.ndarray) or inputs.dtype.kind not in "buif":
        return []
    notes = []
    example = example_shape(inputs.shape, inputs.dtype, images=declared) if add_channels else inputs.shape[1:]
    if len(inputs.shape) == 4 and inputs.shape[1] in (1, 3) and inputs.shape[3] > 4:
        notes.append(f"{name} of the shape {inputs.shape} looks channels-first; the last axis is used as channels")
    if len(example) == len(inputs.shape) and not declared:
        notes.append(
            f"{name} is {inputs.dtype} of the shape {inputs.shape}, like images: added a channel axis "
            "(as float32 or int32, it stays as it is)"
        )
    return notes + _range_notes(inputs, example, name)


def _range_notes(x: npt.NDArray[Any], example: tuple[int, ...], name: str) -> list[str]:
    """Notes on values that do not fit the decision, by type and shape, whether examples are pixels."""
    values = ValueRange.of_array(x.dtype.name, example)
    high = max(float(x.max()), -float(x.min())) if x.dtype.kind == "f" else int(x.max())
    if values.pixels:
        dark = 0 < high < 0.1 * (values.largest or 0)
        return [f"{name} has values only up to {high}, although {x.dtype} goes up to {values.largest}"] if dark else []
    if x.ndim == 4 and high > 10:
        return [
            f"{name} has {x.dtype} values up to {high:g}: not scaled, as only uint8 and uint16 with 1, 3 or 4 channels "
            "are treated as pixels"
        ]
    if x.ndim == 2 and values.largest and high > max(1, values.largest / 2):
        return [f"{name} is {x.dtype} but not in the shape of images: not scaled (--scale 0-1 divides by its range)"]
    return []
