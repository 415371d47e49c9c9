"""Arrays of the user in an ``.npz`` or ``.npy`` file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.data.array_checks import check_parts
from accel_engine.data.array_file import ArrayFile, Header, opened
from accel_engine.data.arrays import converted, example_kind, input_range, make_dataset, target_form
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset, spec_of
from accel_engine.data.roles import Roles, check_named_columns, choose_roles
from accel_engine.data.series.array_series import survey_arrays, windowed_arrays
from accel_engine.data.source import DatasetEntry, EntryColumn, Source
from accel_engine.data.splits import of_own_splits, split_names, split_sizes, validate_on_test
from accel_engine.data.structure import Batch, map_structure, named_leaves
from accel_engine.data.targets import Known, TargetForm, text_array
from accel_engine.errors import DataError, PlanError
from accel_engine.memory import check_fits_memory
from accel_engine.text import truncated
from accel_engine.user_paths import no_file, user_path
from accel_engine.words import numbers

SAMPLES = 3
"""Number of examples that are described."""

MAX_TARGET_BYTES = 64 << 20
"""Targets up to this size are read whole to describe them."""

_HEAD = 64
"""Rows of larger targets that are read to describe them."""

_LISTED = 8
"""Files or arrays that a note lists at most."""

CLASS_NAMES = "class_names"
"""The array that names the classes."""

_SEVERAL = Batch("inputs", "targets", "sample_weight")
"""Names of parts in messages that are several arrays."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _ArrayRoles:
    """The use of each array of a file."""

    splits: Mapping[str, Batch]
    """The names of the arrays of each split: one name, or a dictionary of names, of inputs and targets."""
    unused: tuple[str, ...]
    """Names of arrays that are not used."""
    ignored: tuple[str, ...]
    """Names of arrays that the plan leaves out."""
    notes: tuple[str, ...]
    """Notes for the user."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """The arrays of each split: read, or as large as their headers say."""

    arrays: Mapping[str, Batch]
    """Arrays by the name of the split."""
    names: Mapping[str, Batch]
    """Their names in messages."""
    notes: tuple[str, ...]
    """Notes for the user."""
    options: DataOptions
    """How the training arrays are split."""


class ArraySource(Source):
    """Arrays in a file: ``x`` and ``y``, ``x_train`` and so on, or arrays that the plan names."""

    has_columns = may_be_series = takes_window = True

    def describe(self) -> DatasetEntry:
        """Find what headers, targets and first examples tell, without reading the other examples."""
        options = self._checked_options()
        with opened(self.path) as file:
            if options.window is not None:
                validation = self._of_validation(lambda other: other.headers)
                return survey_arrays(self.entry, file.headers, options, validation)
            roles = _find_roles(file.headers, options)
            parts = self._parts(file, roles, _header_rows)
            check_parts(parts.arrays, parts.names)
            train = roles.splits["train"]
            head: Batch = map_structure(lambda name: file.first_rows(name, SAMPLES), train)
            y = _known_targets(file, train.targets) if isinstance(train.targets, str) else None
            x = Known(*file.headers[train.inputs], head.inputs) if isinstance(train.inputs, str) else None
            class_names, target_name = _class_names(file), parts.names["train"].targets
            form = target_form(y, x, options.task, class_names, target_name)
            if form.labels and y is not None:
                head = head._replace(targets=y.rows[:SAMPLES])
            first = converted(head, form, parts.names["train"], images=False, add_channels=True)
            columns = _columns(file, roles, form)
        spec: Batch = map_structure(spec_of, first)
        values = input_range(parts.arrays["train"].inputs)
        train_count, validation_count, test_count = split_sizes(
            {split: _rows(part) for split, part in parts.arrays.items()}, options
        )
        found = tuple(class_names) or form.names or tuple(map(str, range(form.classes)))
        are_all = bool(class_names) or not form.labels or y is None or y.whole  # the first labels do not tell all
        classes = found if are_all else ()
        return replace(
            self.entry,
            shape=tuple(first.inputs.shape[1:]) if isinstance(first.inputs, np.ndarray) else None,
            classes=len(classes) if y is None or y.whole or classes else None,
            examples=train_count,
            validation_examples=validation_count,
            test_examples=test_count,
            value_range=values,
            notes=(*roles.notes, *parts.notes, *form.notes),
            kind=example_kind(spec.inputs, values),
            task=form.task,
            spec=spec,
            columns=columns,
            class_names=classes,
            class_counts=form.counts if y is not None and y.whole else (),
            samples=_samples(first, form, found),
        )

    def load(self, progress: Progress) -> Dataset:
        """Read the arrays that are used, once they are found to fit in memory."""
        options = self._checked_options()
        with opened(self.path) as file:
            if options.window is not None:
                return windowed_arrays(self.entry.name, _read_all(file), options, self._of_validation(_read_all))
            roles = _find_roles(file.headers, options)
            parts = self._parts(file, roles, ArrayFile.read)
            dataset = make_dataset(
                self.entry.name, parts.arrays, parts.options, class_names=_class_names(file), names=parts.names
            )
        return replace(dataset, notes=(*roles.notes, *parts.notes, *dataset.notes))

    def _checked_options(self) -> DataOptions:
        self.refuse(("kinds", "time", "group"), "only for tables, which have columns")
        return self.options

    def _of_validation(self, take: Callable[[ArrayFile], T]) -> T | None:
        """The arrays of the file with validation data; ``None`` if there is none."""
        given = self.options.validation_data
        if not given:
            return None
        path = user_path(given)
        if path.suffix.lower() not in (".npz", ".npy"):
            raise PlanError("validation_data", given, "must be an .npz or .npy file, as the data is")
        if why := no_file(path):
            raise PlanError("validation_data", given, why)
        with opened(path) as other:
            return take(other)

    def _parts(self, file: ArrayFile, roles: _ArrayRoles, value: Callable[[ArrayFile, str], Any]) -> _Parts:
        """The arrays of each split, as ``value`` gives them by name, once they are found to fit in memory."""
        splits = dict(roles.splits)
        notes = validate_on_test(splits, self.options, "the test arrays")
        options = of_own_splits(self.options, splits)
        if self.options.validation_data:
            splits.pop("validation", None)
        if file.other_files:
            notes.append(f"files in it that are not arrays: {numbers.listed(map(repr, file.other_files), _LISTED)}")
        leaves = [file.headers[name].rows() for part in splits.values() for _, name in named_leaves(part)]
        check_fits_memory(f"reading {len(leaves)} arrays", sum(array.nbytes for array in leaves))

        def of_training(other: ArrayFile) -> Batch:
            own = _find_roles(other.headers, replace(self.options, ignore=()))
            return map_structure(partial(value, other), own.splits["train"])

        arrays = {split: map_structure(partial(value, file), part) for split, part in splits.items()}
        names = {split: _labels(part) for split, part in splits.items()}
        if (validation := self._of_validation(of_training)) is not None:
            arrays["validation"] = validation
            names["validation"] = _labels(splits["train"], f"{Path(self.options.validation_data).name}: ")
        return _Parts(arrays, names, tuple(notes), options)


def _find_roles(headers: Mapping[str, Header], options: DataOptions) -> _ArrayRoles:
    """Find what each array of a file is.

    Args:
        headers: Shapes and types by name.
        options: ``target``, ``features`` and ``ignore`` name arrays, without the split's suffix.

    Raises:
        DataError: There are no inputs.
        PlanError: The plan names an array that is not there.
    """
    splits = split_names(headers)
    train = splits["train"]
    check_named_columns(options, train, "array")
    if not headers:
        raise DataError("the file has no arrays; expected x and y, or x_train and y_train")
    targets = ["y"] if "y" in train and "y" not in options.ignore else None
    roles = choose_roles([name for name in train if name != CLASS_NAMES], options, targets)
    if not options.features:
        own = ("x",) if "x" in roles.inputs else _of_one_length(roles, train, headers)
        roles = replace(roles, inputs=own or roles.inputs)
    notes = []
    if not roles.targets:
        names = ", ".join(roles.inputs)
        notes.append(f"no targets: {names} used as inputs; --target names the arrays to predict")
    wanted = (*roles.inputs, *roles.targets)
    parts = {split: roles.batch(own) for split, own in splits.items() if all(name in own for name in wanted)}
    used = {name for part in parts.values() for _, name in named_leaves(part)}
    ignored = tuple(own[name] for own in splits.values() for name in options.ignore if name in own)
    known = {CLASS_NAMES} if _is_list_of_texts(headers.get(CLASS_NAMES)) else set()
    unused = tuple(sorted(set(headers) - used - known - set(ignored)))
    if unused:
        # repr: the file's names may contain control characters
        notes.append(f"unused arrays in the file: {numbers.listed(map(repr, unused), _LISTED)}")
    return _ArrayRoles(parts, unused, ignored, tuple(notes))


def _of_one_length(roles: Roles, train: Mapping[str, str], headers: Mapping[str, Header]) -> tuple[str, ...]:
    """The inputs with as many rows as the targets; without targets, as most arrays."""
    shapes = {name: headers[train[name]].shape for name in (*roles.targets, *roles.inputs)}
    rows = {name: shape[0] for name, shape in shapes.items() if shape}
    lengths = [rows[name] for name in roles.targets if name in rows] or list(rows.values())
    common = max(lengths, key=lengths.count, default=0)
    return tuple(name for name in roles.inputs if rows.get(name) == common)


def _is_list_of_texts(header: Header | None) -> bool:
    """Whether an array can be the names of classes."""
    return header is not None and len(header.shape) == 1 and header.dtype.kind in "US"


def _header_rows(file: ArrayFile, name: str) -> npt.NDArray[Any]:
    file.check(name)
    return file.headers[name].rows()


def _read_all(file: ArrayFile) -> dict[str, npt.NDArray[Any]]:
    return {name: file.read(name) for name in file.headers}


def _labels(part: Batch, prefix: str = "") -> Batch:
    """Names of the parts in messages: the array's, or nothing where there are several."""
    single = (name if isinstance(name, str) else default for name, default in zip(part, _SEVERAL, strict=True))
    return Batch(*(prefix + name for name in single))


def _class_names(file: ArrayFile) -> tuple[str, ...]:
    if not _is_list_of_texts(file.headers.get(CLASS_NAMES)):
        return ()
    return tuple(map(str, text_array(file.read(CLASS_NAMES))))


def _known_targets(file: ArrayFile, name: str) -> Known:
    header = file.headers[name]
    size = int(np.prod(header.shape)) * header.dtype.itemsize
    whole = len(header.shape) <= 2 and size <= MAX_TARGET_BYTES
    return Known(*header, file.read(name) if whole else file.first_rows(name, _HEAD))


def _rows(part: Batch) -> int:
    return len(next(array for _, array in named_leaves(part)))


def _columns(file: ArrayFile, roles: _ArrayRoles, form: TargetForm) -> tuple[EntryColumn, ...]:
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
        return truncated(" | ".join(map(str, text_array(value.reshape(-1)[:4]))), 60)
    if value.ndim <= 1:
        flat = value.reshape(-1)
        return " ".join(f"{number:g}" for number in flat[:6]) + (" …" if flat.size > 6 else "")
    return f"{'x'.join(map(str, value.shape))}, {value.min():g} to {value.max():g}"
