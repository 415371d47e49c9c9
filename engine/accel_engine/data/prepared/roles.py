"""Chooses which columns of a prepared dataset are inputs, targets and weights, and which of its splits is for what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset_entry import EntryColumn
from accel_engine.data.pixel_scaling import PIXELS, ValueRange, is_image
from accel_engine.data.splits import SPLIT_NAMES
from accel_engine.data.structure import ArraySpec, Batch, Structure
from accel_engine.errors import DataError, PlanError

T = TypeVar("T")

_TARGETS = ("label", "labels", "target", "targets", "class", "y")
"""Names of columns that are targets if nothing else says so."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The columns of examples.

    Attributes:
        inputs: Names of the inputs.
        targets: Names of the targets.
        weight: Name of the sample weights; empty for none.
    """

    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, each once."""
        return tuple(dict.fromkeys((*self.inputs, *self.targets, *filter(None, [self.weight]))))

    def batch(self, columns: Mapping[str, Structure]) -> Batch:
        """The parts of an example: a single column as it is, several as a dictionary by name."""
        return Batch(_part(self.inputs, columns), _part(self.targets, columns), columns.get(self.weight))

    def spec(self, specs: Mapping[str, ArraySpec], task: str) -> Batch:
        """The specs of an example; labels of classes become int32."""
        if task == "classification" and len(self.targets) == 1:
            specs = {**specs, self.targets[0]: replace(specs[self.targets[0]], dtype="int32")}
        return self.batch(specs)


def choose_roles(
    columns: Sequence[str],
    options: DataOptions,
    targets: Sequence[str] | None = None,
    weight: str = "",
    inputs: Sequence[str] = (),
) -> Roles:
    """Choose inputs and targets.

    Args:
        columns: Names of all columns.
        options: The plan's target, features and ignored columns.
        targets: The targets that the data names; ``None`` if it names none.
        weight: Name of the sample weights.
        inputs: The inputs that the data names.

    Raises:
        PlanError: The plan names a column that does not exist.
        DataError: There are no inputs.
    """
    for field, names in (("target", options.target), ("features", options.features), ("ignore", options.ignore)):
        for name in names:
            if name not in columns:
                raise PlanError(field, name, f"not a column of the data, which has {', '.join(columns)}")
    if targets is None:
        targets = [name for name in columns if name.lower() in _TARGETS][:1]
    chosen = options.target or tuple(targets)
    left = options.features or tuple(
        name for name in inputs or columns if name not in chosen and name != weight and name not in options.ignore
    )
    if not left:
        raise DataError(f"no column is left as an input: the data has {', '.join(columns) or 'none'}")
    return Roles(left, chosen, weight)


def task_of(roles: Roles, specs: Mapping[str, ArraySpec], options: DataOptions, class_names: Sequence[str]) -> str:
    """The task that the targets suggest."""
    if options.task != "auto":
        return options.task
    if len(roles.targets) != 1:
        return "auto"
    spec = specs[roles.targets[0]]
    integers = "int" in spec.dtype or spec.dtype == "bool"
    if class_names or integers or spec.dtype == "string":
        return "classification" if not spec.shape else "auto"
    return "regression" if spec.dtype.startswith("float") else "auto"


def kind_and_range(roles: Roles, specs: Mapping[str, ArraySpec], images: Sequence[str]) -> tuple[str, ValueRange]:
    """What an example is, and the range of its values.

    Args:
        roles: The columns.
        specs: Their specs.
        images: Names of the columns that the data says are images.
    """
    if len(roles.inputs) != 1:
        return "arrays", ValueRange()
    spec = specs[roles.inputs[0]]
    if spec.dtype == "string":
        return "text", ValueRange()
    if roles.inputs[0] in images:
        return "images", ValueRange("uint16", 65_535, pixels=True) if spec.dtype == "uint16" else PIXELS
    shape = tuple(side or 0 for side in spec.shape)
    values = ValueRange.of_array(spec.dtype, shape)
    return ("images" if values.pixels and is_image(shape) else "arrays"), values


def describe_columns(roles: Roles, specs: Mapping[str, ArraySpec], images: Sequence[str]) -> tuple[EntryColumn, ...]:
    """What is known of each column."""
    of_role = {"weight": (roles.weight,), "target": roles.targets, "input": roles.inputs}
    known = {name: role for role, names in of_role.items() for name in names}
    return tuple(
        EntryColumn(
            name,
            "image" if name in images else "text" if spec.dtype == "string" else "number",
            known.get(name, "unused"),
            detail=str(spec),
        )
        for name, spec in specs.items()
    )


def choose_splits(splits: Mapping[str, T], options: DataOptions) -> tuple[dict[str, T], tuple[str, ...]]:
    """Choose the splits: a test split is used for validation if there is no other and the plan asks for none.

    Args:
        splits: The splits by name; if there is only one, it is for training.
        options: The plan's split.

    Returns:
        Those of ``train``, ``validation`` and ``test`` that there are, and notes for the user.

    Raises:
        DataError: There is no training split.
    """
    found = {use: next((each for each in splits if each.lower() in names), "") for use, names in SPLIT_NAMES.items()}
    names = {use: name for use, name in found.items() if name}
    if "train" not in names and len(splits) == 1:
        names = dict.fromkeys(["train"], next(iter(splits)))
    if "train" not in names:
        raise DataError(f"there is no training split: the data has {', '.join(splits) or 'none'}")
    notes: list[str] = []
    if "validation" not in names and "test" in names and options.split == "auto" and not options.validation_data:
        names["validation"] = names.pop("test")
        notes.append(f"validating on the split {names['validation']}, as there is no validation split")
    if unused := [name for name in splits if name not in names.values()]:
        notes.append(f"unused splits: {', '.join(unused)}")
    return {use: splits[name] for use, name in names.items()}, tuple(notes)


def _part(names: Sequence[str], columns: Mapping[str, Structure]) -> Structure:
    if not names:
        return None
    return columns[names[0]] if len(names) == 1 else {name: columns[name] for name in names}
