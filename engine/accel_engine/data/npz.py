"""Reads the user's arrays from an ``.npz`` or ``.npy`` file; without TensorFlow."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.array_file import ArrayFile, opened
from accel_engine.data.array_roles import CLASS_NAMES, ArrayRoles, find_roles
from accel_engine.data.arrays import (
    check_parts,
    converted,
    example_kind,
    input_range,
    make_dataset,
    target_form,
)
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset, spec_of
from accel_engine.data.dataset_entry import DatasetEntry, EntryColumn
from accel_engine.data.series.array_series import survey_arrays, windowed_arrays
from accel_engine.data.splits import split_counts
from accel_engine.data.structure import Batch, map_structure, named_leaves
from accel_engine.data.targets import Known, TargetForm, as_text
from accel_engine.errors import PlanError
from accel_engine.memory import check_memory
from accel_engine.user_paths import no_file, user_path

SAMPLES = 3
"""Number of examples that a survey shows."""

MAX_TARGET_BYTES = 64 << 20
"""Targets up to this size are read whole by a survey."""

_HEAD = 64
"""Rows of larger targets that a survey reads."""

_TABLE_FIELDS = ("kinds", "time", "group")


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Read the arrays.

    Args:
        entry: Has the file's path.
        options: The names of targets and inputs, the task, and how to split.
        progress: Not used.

    Raises:
        DataError: The file or its arrays cannot be used.
        PlanError: The plan names an array that is not there, or the arrays cannot be split as it says.
    """
    del progress
    _check_options(options)
    with opened(_path(entry)) as file:
        if options.window is not None:
            return _read_series(entry.name, file, options)
        roles = find_roles(file.headers, options)
        parts, names, notes = _parts(file, roles, options)
        if options.validation_data:
            with opened(_validation_path(options)) as other:
                own = find_roles(other.headers, replace(options, ignore=()))
                parts["validation"] = _read(other, own.splits["train"])
        class_names = _class_names(file)
        dataset = make_dataset(entry.name, parts, _own_splits(parts, options), class_names=class_names, names=names)
    return replace(dataset, notes=(*roles.notes, *notes, *dataset.notes))


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Find what the file's headers, its targets and its first examples tell, without reading the other examples.

    Raises:
        DataError: The file, its headers or its targets cannot be used.
        PlanError: The plan names an array that is not there, or the arrays cannot be split as it says.
    """
    _check_options(options)
    with opened(_path(entry)) as file:
        if options.window is not None:
            return _survey_series(entry, file, options)
        roles = find_roles(file.headers, options)
        parts, names, notes = _parts(file, roles, options, header_only=True)
        if options.validation_data:
            with opened(_validation_path(options)) as other:
                own = find_roles(other.headers, replace(options, ignore=()))
                parts["validation"] = _map_names(own.splits["train"], lambda name: other.headers[name].rows())
        check_parts(parts, names)
        train = roles.splits["train"]
        head: Batch = _map_names(train, lambda name: file.first_rows(name, SAMPLES))
        y = _known_targets(file, train.targets) if isinstance(train.targets, str) else None
        x = None
        if isinstance(train.inputs, str):
            header = file.headers[train.inputs]
            x = Known(header.shape, header.dtype, head.inputs)
        class_names = _class_names(file)
        form = target_form(y, x, options.task, class_names, names["train"].targets)
        if form.labels and y is not None:
            head = head._replace(targets=y.rows[:SAMPLES])
        first = converted(head, form, names["train"], images=False, add_channels=True)
        columns = _columns(file, roles, form)
    spec: Batch = map_structure(spec_of, first)
    values = input_range(parts["train"].inputs)
    counts = {split: _rows(part) for split, part in parts.items()}
    own_options = _own_splits(parts, options)
    held = (0, 0)
    if "validation" not in counts or "test" not in counts:
        unsplit = replace(own_options, validation_split=0.0) if "validation" in counts else own_options
        held = split_counts(counts["train"], replace(unsplit, test_split=0.0) if "test" in counts else unsplit)
    classes = tuple(class_names) or form.names or tuple(map(str, range(form.classes)))
    return replace(
        entry,
        shape=tuple(first.inputs.shape[1:]) if isinstance(first.inputs, np.ndarray) else None,
        classes=len(classes) if y is None or y.whole or classes else None,
        examples=counts["train"] - sum(held),
        validation_examples=counts.get("validation", held[0]),
        test_examples=counts.get("test", held[1]),
        value_range=values,
        notes=(*roles.notes, *notes, *form.notes),
        kind=example_kind(spec.inputs, values),
        task=form.task,
        spec=spec,
        columns=columns,
        class_names=classes,
        class_counts=form.counts if y is not None and y.whole else (),
        samples=_samples(first, form, classes),
    )


def _path(entry: DatasetEntry) -> Path:
    assert entry.path is not None  # noqa: S101 (an entry of an .npz file has a path)
    return entry.path


def _check_options(options: DataOptions) -> None:
    for field in ("kinds",) if options.window is not None else _TABLE_FIELDS:
        if value := getattr(options, field):
            raise PlanError(field, value, "only for tables, which have columns")


def _read_series(name: str, file: ArrayFile, options: DataOptions) -> Dataset:
    """The windows of time series."""
    validation = None
    if options.validation_data:
        with opened(_validation_path(options)) as other:
            validation = {each: other.read(each) for each in other.headers}
    return windowed_arrays(name, {each: file.read(each) for each in file.headers}, options, validation)


def _survey_series(entry: DatasetEntry, file: ArrayFile, options: DataOptions) -> DatasetEntry:
    validation = None
    if options.validation_data:
        with opened(_validation_path(options)) as other:
            validation = other.headers
    return survey_arrays(entry, file.headers, options, validation)


def _validation_path(options: DataOptions) -> Path:
    path = user_path(options.validation_data)
    if path.suffix.lower() not in (".npz", ".npy"):
        raise PlanError("validation_data", options.validation_data, "must be an .npz or .npy file, as the data is")
    if why := no_file(path):
        raise PlanError("validation_data", options.validation_data, why)
    return path


def _parts(
    file: ArrayFile, roles: ArrayRoles, options: DataOptions, *, header_only: bool = False
) -> tuple[dict[str, Batch], dict[str, Batch], list[str]]:
    """The arrays of each split, their names in messages, and notes about the splits."""
    splits, notes = dict(roles.splits), []
    as_validation = "validation" not in splits and not options.validation_data and options.split == "auto"
    if "test" in splits and as_validation:
        splits["validation"] = splits.pop("test")
        notes.append("the test arrays are the validation split; add x_val and y_val to keep them apart")
    if options.validation_data and "validation" in splits:
        del splits["validation"]
    parts = {split: _map_names(part, lambda name: file.headers[name].rows()) for split, part in splits.items()}
    leaves = [array for part in parts.values() for _, array in named_leaves(part)]
    check_memory(f"reading {len(leaves)} arrays", sum(array.nbytes for array in leaves))
    if not header_only:
        parts = {split: _read(file, part) for split, part in splits.items()}
    names = {split: _labels(part) for split, part in splits.items()}
    if options.validation_data:
        names["validation"] = _labels(splits["train"], f"{Path(options.validation_data).name}: ")
    return parts, names, notes


def _labels(part: Batch, prefix: str = "") -> Batch:
    """Names of the parts in messages: that of the array, or nothing where there are several."""
    single = (name if isinstance(name, str) else default for name, default in zip(part, _SEVERAL, strict=True))
    return Batch(*(prefix + name for name in single))


_SEVERAL = Batch("inputs", "targets", "sample_weight")


def _read(file: ArrayFile, part: Batch) -> Batch:
    return _map_names(part, file.read)


def _map_names(part: Batch, function: Any) -> Batch:
    mapped: Batch = map_structure(function, part)
    return mapped


def _own_splits(parts: Mapping[str, Batch], options: DataOptions) -> DataOptions:
    return replace(options, validation_data="") if "validation" in parts else options


def _class_names(file: ArrayFile) -> tuple[str, ...]:
    header = file.headers.get(CLASS_NAMES)
    if header is None or len(header.shape) != 1 or header.dtype.kind not in "US":
        return ()
    return tuple(map(str, as_text(file.read(CLASS_NAMES))))


def _known_targets(file: ArrayFile, name: str) -> Known:
    header = file.headers[name]
    size = int(np.prod(header.shape)) * header.dtype.itemsize
    whole = len(header.shape) <= 2 and size <= MAX_TARGET_BYTES
    return Known(*header, file.read(name) if whole else file.first_rows(name, _HEAD))


def _rows(part: Batch) -> int:
    return len(next(array for _, array in named_leaves(part)))


def _columns(file: ArrayFile, roles: ArrayRoles, form: TargetForm) -> tuple[EntryColumn, ...]:
    """The arrays of the file, used ones first."""
    columns = []
    for part in roles.splits.values():
        for role, structure in zip(("input", "target", "weight"), part, strict=True):
            for _, name in named_leaves(structure):
                classes = role == "target" and form.classes
                detail = f"{form.classes} classes" if classes else ""
                columns.append(_column(file, name, "label" if classes else "", role, detail))
    columns += [_column(file, name, "", "unused") for name in roles.unused]
    return (*columns, *(_column(file, name, "ignored", "unused") for name in roles.ignored))


def _column(file: ArrayFile, name: str, kind: str, role: str, more: str = "") -> EntryColumn:
    shape, dtype = file.headers[name]
    inferred = "text" if dtype.kind in "OUS" else "number"
    if role == "input" and input_range(file.headers[name].rows()).pixels:
        inferred = "image"
    detail = f"{dtype} [{', '.join(map(str, shape))}]"
    return EntryColumn(name, kind or inferred, role, detail=f"{detail}, {more}" if more else detail)


def _samples(first: Batch, form: TargetForm, classes: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The first examples as text."""
    samples = []
    for row in range(_rows(first)):
        words = [f"{name or 'input'}: {value_text(array[row])}" for name, array in named_leaves(first.inputs)]
        for name, array in named_leaves(first.targets):
            label = classes[int(array[row])] if form.labels else value_text(array[row])
            words.append(f"{name or 'target'}: {label}")
        samples.append((str(row), ", ".join(words)))
    return tuple(samples)


def value_text(value: npt.NDArray[Any]) -> str:
    """A short text about an array of one example."""
    value = np.asarray(value)
    if value.dtype.kind in "OUS":
        text = " | ".join(map(str, as_text(value.reshape(-1)[:4])))
        return text if len(text) <= 60 else text[:59] + "…"
    if value.ndim <= 1:
        flat = value.reshape(-1)
        return " ".join(f"{number:g}" for number in flat[:6]) + (" …" if flat.size > 6 else "")
    return f"{'x'.join(map(str, value.shape))}, {value.min():g} to {value.max():g}"
