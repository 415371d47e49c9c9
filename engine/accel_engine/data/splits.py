"""Chooses the rows of the training, validation and test split; the same seed gives the same split everywhere."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import SPLIT_NAMES, DataOptions
from accel_engine.errors import DataError, FieldValue, PlanError

T = TypeVar("T")

Rows = npt.NDArray[np.intp]

_USES = {name: use for use, names in SPLIT_NAMES.items() for name in names}
"""The split of each of these names."""


class SplitRows(NamedTuple):
    """Row numbers of each split, ascending; empty for a split without rows."""

    train: Rows
    validation: Rows
    test: Rows


def choose_split(options: DataOptions, *, ordered: bool = False) -> str:
    """The plan's split; ``auto`` is random for independent examples and ordered for time series and text.

    Args:
        options: The plan's split.
        ordered: Whether the order of the examples means something, as in time series and text. Only then are
            ``random`` and ``stratified`` refused.

    Raises:
        PlanError: The split does not fit ordered examples, or is ``none`` although the plan has a test split.
    """
    if options.split == "none" and options.test_split:
        raise PlanError("test_split", options.test_split, "needs another split than ", FieldValue("split", "none"))
    if ordered and options.split in ("random", "stratified"):
        reason = "would put neighbours of training examples into validation; use ordered or none"
        raise PlanError("split", options.split, reason)
    if options.split == "auto":
        return "ordered" if ordered else "random"
    return options.split


def split_rows(
    examples: int, options: DataOptions, labels: npt.NDArray[Any] | None = None, *, ordered: bool = False
) -> SplitRows:
    """Split examples as a plan says.

    In an ordered split, training examples come first, then validation, then test examples.

    Args:
        examples: Their number.
        options: The plan's split, shares and seed.
        labels: Class of each example, ``[examples]``, for a stratified split.
        ordered: Whether the order of the examples means something, as in :func:`choose_split`.

    Raises:
        PlanError: The data has no classes for a stratified split, or the shares leave no training examples.
    """
    order = np.arange(examples)
    kind = choose_split(options, ordered=ordered)
    validation, test = split_counts(examples, options)
    if kind in ("none", "ordered"):
        end = examples - test
        return SplitRows(order[: end - validation], order[end - validation : end], order[end:])
    generator = np.random.default_rng(options.seed)
    if kind == "random":
        # The first rows of the permutation are for validation.
        validated, tested, rest = np.split(generator.permutation(examples), [validation, validation + test])
        return SplitRows(np.sort(rest), np.sort(validated), np.sort(tested))
    if kind != "stratified":
        raise PlanError("split", options.split, "needs a table with this column")
    if labels is None:
        raise PlanError("split", options.split, "needs one class per example; use random")
    return _stratified(labels, validation, test, generator)


def split_counts(examples: int, options: DataOptions) -> tuple[int, int]:
    """Number of validation and of test examples: at least 1 where a share is given; 0 for a single example.

    Raises:
        PlanError: The splits leave no training examples.
    """
    if options.split == "none":
        return 0, 0
    validation, test = (
        0 if examples < 2 or not share else max(1, round(examples * share))
        for share in (0.0 if has_other_validation(options) else options.validation_split, options.test_split)
    )
    if examples and validation + test >= examples:
        field, value = (
            ("test_split", options.test_split) if test >= validation else ("validation_split", options.validation_split)
        )
        reason = f"{validation} validation and {test} test examples leave none of {examples} to train on"
        raise PlanError(field, value, reason)
    return validation, test


def split_sizes(examples: Mapping[str, int], options: DataOptions) -> tuple[int, int, int]:
    """Number of training, validation and test examples, before they are read.

    Args:
        examples: The number in each split that the data has, by ``train``, ``validation`` and ``test``. Other splits
            are shares of the training examples.
        options: The plan's split and shares.

    Raises:
        PlanError: The shares leave no training examples.
    """
    own = without_shares(options, validation="validation" in examples, test="test" in examples)
    validation, test = split_counts(examples["train"], own)
    return examples["train"] - validation - test, examples.get("validation", validation), examples.get("test", test)


def without_shares(options: DataOptions, *, validation: bool, test: bool) -> DataOptions:
    """Options for rows whose validation or test examples are elsewhere; not if they take the place of a share."""
    return replace(
        options,
        validation_split=0.0 if validation and not options.keeps_split else options.validation_split,
        test_split=0.0 if test else options.test_split,
    )


def of_own_splits(options: DataOptions, own: Container[str]) -> DataOptions:
    """Options for data with some splits of its own, from which no share is taken for validation if that is one."""
    return replace(options, validation_split=0.0) if "validation" in own else options


def split_names(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Tell from names such as ``x_val`` and ``val_images`` of which split they are; all others are of training.

    Returns:
        The names of ``train`` and of the other splits that there are, by what else they say, such as ``x``.
    """
    ends = {name: name.rpartition("_")[::2] for name in names}
    for name, (_, end) in ends.items():
        use, _, stem = name.partition("_")
        if use in _USES and end not in _USES:
            ends[name] = stem, use
    trained = {*ends, *(stem for stem, end in ends.values() if _USES.get(end) == "train")}
    splits: dict[str, dict[str, str]] = {"train": {}}
    for name, (stem, end) in ends.items():
        if stem in trained and end in _USES:
            splits.setdefault(_USES[end], {})[stem] = name
        else:
            splits["train"].setdefault(name, name)
    return splits


def choose_splits(splits: Mapping[str, T], options: DataOptions) -> tuple[dict[str, T], tuple[str, ...]]:
    """Choose the splits of data by what they are called.

    Args:
        splits: The splits by name; if there is only one, it is for training.
        options: The plan's split.

    Returns:
        The splits that there are, by ``train``, ``validation`` and ``test``, and notes for the user.

    Raises:
        DataError: There is no training split.
    """
    by_use = ((use, next((each for each in splits if each.lower() in names), "")) for use, names in SPLIT_NAMES.items())
    found = {use: name for use, name in by_use if name}
    if "train" not in found and len(splits) == 1:
        found = dict.fromkeys(["train"], next(iter(splits)))
    if "train" not in found:
        raise DataError(f"there is no training split: the data has {', '.join(splits) or 'none'}")
    notes = validate_on_test(found, options, f"the split {found.get('test')}")
    if unused := [name for name in splits if name not in found.values()]:
        notes.append(f"unused splits: {', '.join(unused)}")
    return {use: splits[name] for use, name in found.items()}, tuple(notes)


def validate_on_test(splits: dict[str, T], options: DataOptions, test: str) -> list[str]:
    """Use the test split for validation, if there is no validation split and the plan's ``split`` is ``auto``.

    Args:
        splits: The splits, of which ``test`` becomes ``validation``.
        options: The plan's split.
        test: What the test split is called.

    Returns:
        A note if it does so; otherwise nothing.
    """
    if "validation" in splits or "test" not in splits or options.split != "auto" or has_other_validation(options):
        return []
    splits["validation"] = splits.pop("test")
    return [f"validating on {test}, as there is no validation split"]


def has_other_validation(options: DataOptions) -> bool:
    """Whether no examples are split off for validation, as they come from elsewhere."""
    return bool(options.validation_data) and not options.keeps_split


def _stratified(labels: npt.NDArray[Any], validation: int, test: int, generator: np.random.Generator) -> SplitRows:
    """Give each split its share of every class. One example of every class at least is for training."""
    _, classes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if validation + test > (sizes - 1).sum():
        reason = f"{len(sizes)} classes are too many for {len(labels)} examples; use random"
        raise PlanError("split", "stratified", reason)
    validated = _apportion(sizes - 1, validation)
    tested = _apportion(sizes - 1 - validated, test)
    shuffled = generator.permutation(len(labels))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    # The position of each example within its class.
    position = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    last_validated, last_tested = np.repeat(validated, sizes), np.repeat(validated + tested, sizes)
    parts = (
        position >= last_tested,
        position < last_validated,
        (position >= last_validated) & (position < last_tested),
    )
    return SplitRows(*(np.sort(by_class[part]) for part in parts))


def _apportion(sizes: npt.NDArray[np.intp], total: int) -> npt.NDArray[np.intp]:
    """Divide ``total`` in proportion to ``sizes``, by the method of the largest remainder."""
    quotas = sizes * (total / max(1, sizes.sum()))
    counts: npt.NDArray[np.intp] = np.floor(quotas).astype(np.intp)
    largest = np.argsort(counts - quotas, kind="stable")
    counts[largest[: total - counts.sum()]] += 1
    return counts


def split_by_values(values: Sequence[object], column: str) -> SplitRows:
    """Split rows by a column.

    Args:
        values: Its values, which are :data:`SPLIT_NAMES`.
        column: Its name.

    Raises:
        PlanError: A value is not one of them, or there are no training rows.
    """
    assigned = np.array([_USES.get(str(value).lower(), "") for value in values])
    if unknown := np.flatnonzero(assigned == "").tolist():
        shown = repr(values[unknown[0]]) if values[unknown[0]] is not None else "no value"
        reason = f"row {unknown[0] + 1:,} has {shown}; the column must have train, validation or test"
        raise PlanError("split", f"column:{column}", reason)
    rows = SplitRows(*(np.flatnonzero(assigned == split) for split in SPLIT_NAMES))
    if not len(rows.train):
        raise PlanError("split", f"column:{column}", "no row has the value train")
    return rows
