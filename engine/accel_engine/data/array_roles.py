"""Tells from the names of the arrays of a file which are inputs, targets and sample weights of which split."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from accel_engine.data.array_file import Header
from accel_engine.data.data_options import DataOptions
from accel_engine.data.structure import Batch
from accel_engine.errors import DataError, PlanError
from accel_engine.text import suggestion

TARGETS = ("y", "target", "targets", "label", "labels")
"""Arrays that are targets unless the plan names others; the first one that is there."""

WEIGHTS = ("sample_weight", "sample_weights")
CLASS_NAMES = "class_names"

_SUFFIX = re.compile(r"(.+)_(train|val|valid|validation|test)")
_SPLITS = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "test": "test"}

_MAX_LISTED = 8
"""Maximum number of arrays listed in a note."""


@dataclass(frozen=True, slots=True)
class ArrayRoles:
    """What the arrays of a file are.

    Attributes:
        splits: The names of the arrays of each split: one name, or a dictionary of names, of inputs and targets.
        unused: Names of arrays that are not used.
        ignored: Names of arrays that the plan leaves out.
        notes: Notes for the user.
    """

    splits: Mapping[str, Batch]
    unused: tuple[str, ...]
    ignored: tuple[str, ...]
    notes: tuple[str, ...]


def find_roles(headers: Mapping[str, Header], options: DataOptions) -> ArrayRoles:
    """Find what each array of a file is.

    Args:
        headers: Shapes and types by name.
        options: ``target``, ``features`` and ``ignore`` name arrays, without the split's suffix.

    Raises:
        DataError: There are no inputs.
        PlanError: The plan names an array that is not there.
    """
    splits = _by_split(headers)
    train = splits["train"]
    _check_names(options, train)
    weights = next((name for name in WEIGHTS if name in train), None)
    targets = options.target or tuple(name for name in TARGETS if name in train and name not in options.ignore)[:1]
    others = [name for name in train if name not in (*targets, *options.ignore, weights, CLASS_NAMES)]
    features = tuple(options.features) or (("x",) if "x" in others else _of_one_length(others, targets, train, headers))
    if not features:
        found = f"the file has {', '.join(sorted(headers))}" if headers else "the file has no arrays"
        raise DataError(f"no inputs: expected x and y, or x_train and y_train, or arrays named with --target; {found}")
    notes = []
    if not targets:
        names = ", ".join(features)
        notes.append(f"no targets: {names} used as inputs; --target names the arrays to predict")
    found_splits: dict[str, Batch] = {}
    for split, own in splits.items():
        if all(name in own for name in (*features, *targets)):
            found_splits[split] = Batch(_pick(features, own), _pick(targets, own), own.get(weights or ""))
    used = {name for part in found_splits.values() for each in part for name in _names(each)}
    ignored = tuple(own[name] for own in splits.values() for name in options.ignore if name in own)
    known = {CLASS_NAMES} if is_list_of_texts(headers.get(CLASS_NAMES)) else set()
    unused = tuple(sorted(set(headers) - used - known - set(ignored)))
    if unused:
        # repr: the file's names may contain control characters
        listed = ", ".join(map(repr, unused[:_MAX_LISTED])) + (", …" if len(unused) > _MAX_LISTED else "")
        notes.append(f"unused arrays in the file: {listed}")
    return ArrayRoles(found_splits, unused, ignored, tuple(notes))


def is_list_of_texts(header: Header | None) -> bool:
    """Whether an array can be the names of classes."""
    return header is not None and len(header.shape) == 1 and header.dtype.kind in "US"


def _by_split(headers: Mapping[str, Header]) -> dict[str, dict[str, str]]:
    """The arrays of each split: their names in the file, by their names without the split's suffix."""
    splits: dict[str, dict[str, str]] = {"train": {}}
    for name in headers:
        match = _SUFFIX.fullmatch(name)
        if match and (f"{match[1]}_train" in headers or match[1] in headers):
            splits.setdefault(_SPLITS[match[2]], {})[match[1]] = name
    for name in headers:
        if not any(name in own.values() for own in splits.values()):
            splits["train"].setdefault(name, name)
    return splits


def _check_names(options: DataOptions, train: Mapping[str, str]) -> None:
    for field in ("target", "features", "ignore"):
        for name in getattr(options, field):
            if name not in train:
                raise PlanError(
                    field, getattr(options, field), f"the file has no array {name!r}; {suggestion(name, train)}"
                )
    if twice := set(options.target) & set(options.features):
        raise PlanError("features", options.features, f"{', '.join(sorted(twice))} cannot also be a target")


def _of_one_length(
    names: list[str], targets: tuple[str, ...], train: Mapping[str, str], headers: Mapping[str, Header]
) -> tuple[str, ...]:
    """The arrays with as many rows as the targets; without targets, as most arrays."""
    rows = {name: headers[train[name]].shape[0] for name in (*names, *targets) if headers[train[name]].shape}
    if not rows:
        return ()
    length = rows[targets[0]] if targets and targets[0] in rows else Counter(rows.values()).most_common(1)[0][0]
    return tuple(name for name in names if rows.get(name) == length)


def _pick(names: tuple[str, ...], own: Mapping[str, str]) -> str | dict[str, str] | None:
    """One array, or several by name."""
    if len(names) == 1:
        return own[names[0]]
    return {name: own[name] for name in names} or None


def _names(part: str | dict[str, str] | None) -> list[str]:
    return [part] if isinstance(part, str) else list((part or {}).values())
