"""Base of sources of prepared examples with named columns: describes them, and makes a dataset."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.arrays import target_form
from accel_engine.data.changes import Change
from accel_engine.data.data_options import OF_CLASSES, DataOptions, Progress
from accel_engine.data.dataset import Dataset, Split, fits_in_memory
from accel_engine.data.folders.image_folder import common_size, image_changes
from accel_engine.data.pixel_scaling import PIXELS, ValueRange, is_image
from accel_engine.data.prepared.columns import ColumnSource, SourceColumn, SourceColumns, decode_columns, row_bytes
from accel_engine.data.roles import Roles
from accel_engine.data.source import DatasetEntry, EntryColumn, Source, parse_size
from accel_engine.data.splits import of_own_splits, split_rows, split_sizes, without_shares
from accel_engine.data.structure import ArraySpec, Batch, map_structure
from accel_engine.data.targets import Known, named_classes, sparse_labels
from accel_engine.errors import DataError
from accel_engine.image_files import parse_header

LOOKED_AT = 64
"""Number of images whose headers are looked at."""

_SMALL = 1024
"""Bytes of an example up to which a target is held in memory although the inputs do not fit there."""

_NAMED = 3
"""Number of examples that cannot be read that are named."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns, roles and classes of prepared examples, known before they are read."""

    specs: dict[str, ArraySpec]
    """Shape and type of each column that can be used."""
    roles: Roles
    """Which columns are what."""
    images: tuple[str, ...] = ()
    """Names of the columns that are images."""
    class_names: tuple[str, ...] = ()
    """Names of the classes of the target; empty if unknown."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
    changes: tuple[Change, ...] = ()
    """What reading changes."""
    name: str = ""
    """Name of the dataset; empty for its file's or folder's."""


class PreparedSource(Source):
    """Examples with named columns, in splits."""

    has_columns = resizes_images = True

    @cached_property
    @abstractmethod
    def layout(self) -> Layout:
        """The layout by headers and first examples.

        Raises:
            DataError: The data is damaged.
            PlanError: An option does not fit.
        """

    @property
    def own_splits(self) -> Container[str]:
        """The splits of the data itself, without other validation examples."""
        return self.count()

    @abstractmethod
    def count(self) -> Mapping[str, int | None]:
        """Number of examples of each split that the data has; ``None`` if only reading tells it."""

    @abstractmethod
    def open(self) -> Mapping[str, ColumnSource]:
        """The examples of each split.

        Raises:
            DataError: The data is damaged.
        """

    def describe(self) -> DatasetEntry:
        """Find columns, classes and counts."""
        layout, options = self.layout, self.options
        counts = self.count()
        sizes: dict[str, int | None] = {}
        if counts["train"] is not None:
            known = {use: count or 0 for use, count in counts.items()}
            sizes = dict(zip(("train", "validation", "test"), split_sizes(known, options), strict=True))
        kind, values = _kind_and_range(layout.roles, layout.specs, layout.images)
        task = _task_of(layout.roles, layout.specs, options, layout.class_names)
        spec = _spec_of(layout.roles, layout.specs, task)
        class_names = _class_names(layout, task)
        return replace(
            self.entry,
            name=layout.name or self.entry.name,
            shape=tuple(side or 0 for side in spec.inputs.shape) if isinstance(spec.inputs, ArraySpec) else None,
            classes=len(class_names) or None,
            examples=sizes.get("train"),
            validation_examples=counts.get("validation", sizes.get("validation")),
            test_examples=counts.get("test", sizes.get("test")),
            value_range=values,
            notes=(*self.entry.notes, *layout.notes),
            changes=layout.changes,
            kind=kind,
            task=task,
            spec=spec,
            columns=_describe_columns(layout.roles, layout.specs, layout.images),
            class_names=class_names,
        )

    def load(self, progress: Progress) -> Dataset:
        """Read the columns into memory if they fit, or make lazy arrays of them."""
        layout, options = self.layout, self.options
        sources = self.open()
        size = row_bytes(layout.specs[name] for name in layout.roles.names)
        reader = _Reader(layout, options, progress, fits_in_memory(size * sum(map(len, sources.values()))))
        splits = {use: reader.read(sources[use]) for use in ("train", "validation", "test") if use in sources}
        task = _task_of(layout.roles, layout.specs, options, layout.class_names)
        names, found = _class_names(layout, task), tuple(splits)
        if task in OF_CLASSES and len(layout.roles.targets) == 1:
            splits, names = _with_classes(splits, names, layout.roles.targets[0], replace(options, task=task))
        unlabelled = [f"the {use} split has no labels: it is not used" for use in found if use not in splits]
        own = of_own_splits(options, [use for use in splits if use in self.own_splits])
        splits, notes = _divided(splits, own, task, is_labelled=bool(names))
        kind, values = _kind_and_range(layout.roles, layout.specs, layout.images)
        return Dataset(
            layout.name or self.entry.name,
            splits["train"],
            splits.get("validation"),
            splits.get("test"),
            class_names=names,
            task=task,
            kind=kind,
            target_names=layout.roles.targets,
            value_range=values,
            notes=(*layout.notes, *unlabelled, *notes),
            changes=(*layout.changes, *reader.changes),
            warnings=self.precision_warnings(),
        )

    def precision_warnings(self) -> tuple[str, ...]:
        """A warning on columns of float64, where the data has some, whose digits are lost where they become float32."""
        return ()


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the examples of a source."""

    layout: Layout
    options: DataOptions
    progress: Progress
    in_memory: bool
    changes: list[Change] = field(default_factory=list)

    def read(self, source: ColumnSource) -> Split:
        """The examples that are valid, in memory or lazy."""
        roles, skip = self.layout.roles, self.options.invalid_examples == "skip"
        names = roles.names
        eager = [name for name in names if self.in_memory or self._is_small_target(name)]
        values, valid = decode_columns(source, eager, self.progress, skip=skip) if eager else ({}, None)
        if skip and len(eager) < len(names):
            _, valid = decode_columns(source, names, self.progress, skip=True, store=False)
        rows = np.arange(len(source)) if valid is None else np.flatnonzero(valid)
        if len(rows) < len(source):
            self._leave_out(source, np.setdiff1d(np.arange(len(source)), rows))
            values = {name: array[rows] for name, array in values.items()}
        lazy = SourceColumns(source, [name for name in names if name not in values], rows)
        columns: dict[str, Any] = {name: values[name] if name in values else lazy.array(name) for name in names}
        return Split(*roles.batch(columns))

    def _is_small_target(self, name: str) -> bool:
        roles = self.layout.roles
        target = name in roles.targets or name == roles.weight
        return target and name not in roles.inputs and row_bytes([self.layout.specs[name]]) <= _SMALL

    def _leave_out(self, source: ColumnSource, rows: npt.NDArray[np.intp]) -> None:
        if len(rows) == len(source):
            raise DataError(f"not one of {len(source)} examples can be read: {source.problem(0)}")
        problems = "; ".join(str(source.problem(int(row))) for row in rows[:_NAMED])
        self.changes.append(Change("left out", "examples", len(rows), len(source), problems))


def _class_names(layout: Layout, task: str) -> tuple[str, ...]:
    """Names of the classes: the data's; of one-hot and multi-hot vectors without names, the places in them."""
    spec = layout.specs[layout.roles.targets[0]] if len(layout.roles.targets) == 1 else None
    if layout.class_names or spec is None or len(spec.shape) != 1 or not _is_vector(spec.shape, task):
        return layout.class_names
    return tuple(map(str, range(spec.shape[0] or 0)))


def _is_vector(shape: Sequence[int | None], task: str) -> bool:
    """Whether targets, each of a shape, have a number for each class; otherwise each is the label of a class."""
    return task == "multi-label" or (task == "classification" and len(shape) == 1 and shape[0] != 1)


def _with_classes(
    splits: dict[str, Split], class_names: tuple[str, ...], name: str, options: DataOptions
) -> tuple[dict[str, Split], tuple[str, ...]]:
    """The splits with labels as int32, without those whose labels are all -1, and the names of the classes.

    Raises:
        DataError: A label is not one of the classes, or a vector is not one of the task.
    """
    labels = {use: split.targets for use, split in splits.items()}
    if not all(isinstance(each, np.ndarray) for each in labels.values()):
        return splits, class_names
    if _is_vector(labels["train"].shape[1:], options.task):
        for use, each in labels.items():
            target_form(Known.of(each), None, options.task, class_names, f"{name} of the split {use}")
        dtype = np.int32 if options.task == "classification" else labels["train"].dtype
        return {use: replace(splits[use], targets=each.astype(dtype)) for use, each in labels.items()}, class_names
    if labels["train"].dtype.kind in "OUS":
        form = named_classes(labels["train"], class_names, name)
        class_names = form.names
        labels = {use: form.convert(each, name) for use, each in labels.items()}
    labels = {use: each for use, each in labels.items() if use == "train" or not np.all(each == -1)}
    if not class_names and labels["train"].ndim == 1:
        sparse_labels(labels["train"], name)
    is_fixed = bool(class_names) or options.keeps_split  # other data has no say in what the classes are
    own = (each for use, each in labels.items() if not (use == "validation" and options.keeps_split))
    names = class_names or tuple(map(str, range(1 + max(int(np.max(each)) for each in own))))
    for use, each in labels.items():
        wrong = (each < 0) | (each >= len(names)) | (each != np.floor(each))
        if wrong.any():
            row = int(np.argmax(wrong))
            where = f"example {row} of the split {use}"
            must = f"from 0 to {len(names) - 1}" if is_fixed else "0 or more"
            raise DataError(f"{where} has the label {each[row]}; labels must be {must}")
    return {use: replace(splits[use], targets=each.astype(np.int32)) for use, each in labels.items()}, names


def _divided(
    splits: dict[str, Split], options: DataOptions, task: str, *, is_labelled: bool
) -> tuple[dict[str, Split], list[str]]:
    """The splits that the data has, and shares of the training examples for others, with notes about these."""
    train = splits["train"]
    own = without_shares(options, validation="validation" in splits, test="test" in splits)
    rows = split_rows(len(train), own, _labels(train.targets, task) if is_labelled else None)
    notes = []
    if "validation" not in splits and options.split != "none":
        notes.append(f"validation split: {len(rows.validation)} of {len(train)} examples")
    if len(rows.test):
        notes.append(f"test split: {len(rows.test)} of {len(train)} examples")
    shares = {use: _select(train, own_rows) for use, own_rows in rows._asdict().items() if len(own_rows)}
    return {**shares, **splits, "train": shares["train"]}, notes


def _labels(targets: Any, task: str) -> npt.NDArray[Any] | None:
    """The class of each example, for a stratified split; ``None`` where that is unknown, or an example has several."""
    if not isinstance(targets, np.ndarray):
        return None
    if targets.size == len(targets):
        return targets.reshape(-1)
    return targets.argmax(axis=1) if task == "classification" else None


def _select(split: Split, rows: npt.NDArray[np.intp]) -> Split:
    def select(array: npt.NDArray[Any] | SourceColumn) -> Any:
        return array[rows] if isinstance(array, np.ndarray) else array.select(rows)

    return Split(*map_structure(select, split.batch))


def _spec_of(roles: Roles, specs: Mapping[str, ArraySpec], task: str) -> Batch:
    """The specs of an example; labels of classes become int32."""
    if task == "classification" and len(roles.targets) == 1:
        specs = {**specs, roles.targets[0]: replace(specs[roles.targets[0]], dtype="int32")}
    return roles.batch(specs)


def _task_of(roles: Roles, specs: Mapping[str, ArraySpec], options: DataOptions, class_names: Sequence[str]) -> str:
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


def _kind_and_range(roles: Roles, specs: Mapping[str, ArraySpec], images: Sequence[str]) -> tuple[str, ValueRange]:
    """The kind of an example, and the range of its values.

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


def _describe_columns(roles: Roles, specs: Mapping[str, ArraySpec], images: Sequence[str]) -> tuple[EntryColumn, ...]:
    """Describe each column, as far as it is known."""
    known = roles.by_name()
    return tuple(
        EntryColumn(
            name,
            "image" if name in images else "text" if spec.dtype == "string" else "number",
            known.get(name, "unused"),
            detail=str(spec),
        )
        for name, spec in specs.items()
    )


def size_images(
    name: str,
    contents: Sequence[bytes],
    shape: Sequence[int | None],
    total: int | None,
    options: DataOptions,
    dtype: str = "uint8",
) -> tuple[ArraySpec, tuple[Change, ...]]:
    """The spec of images: of the size of the plan or, where the shape does not say it, of the most common size.

    Args:
        name: The column, for messages.
        contents: The first images.
        shape: Height, width and channels that the data says; ``None`` where it does not.
        total: Number of all images; ``None`` if unknown.
        options: The plan's size.
        dtype: Type of the pixels.

    Returns:
        The spec, and what reading the images changes.

    Raises:
        DataError: None of the first values is an image that can be read.
        PlanError: The size is invalid.
    """
    headers = Counter(header for content in contents if (header := parse_header(content)) is not None)
    height, width, channels = shape
    reason = ""
    if options.image_size is not None:
        height, width = parse_size(options.image_size)
    if None in (height, width, channels) and not headers:
        raise DataError(f"the column {name} has no images that can be read")
    if height is None or width is None:
        common_height, common_width = common_size(headers)
        height, width = height or common_height, width or common_width
        reason = ", the most common size (change it with image_size)"
    channels = channels or max(header.channels for header in headers)
    sides = (height, width, min(channels, 3))
    decoded = "uint16" if dtype == "uint16" else "uint8"
    is_sampled = total is None or total > headers.total()
    return ArraySpec(sides, dtype), image_changes(headers, sides, decoded, reason, is_sampled=is_sampled)


def padding(lengths: Mapping[str, int | None], window: int | None) -> tuple[Change, ...]:
    """The note on columns whose lists are padded.

    Args:
        lengths: Their lengths after padding.
        window: The plan's window.
    """
    if not lengths:
        return ()
    if window is not None:
        detail = f"with 0 to the window of {window}, or cut: {', '.join(lengths)}"
    else:
        named = ", ".join(f"{name} ({length})" for name, length in lengths.items())
        detail = f"with 0 to the longest: {named}; set the window for another length"
    return (Change("padded", "lists of several lengths", detail=detail),)
