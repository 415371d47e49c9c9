"""Reads what a Python function of the user returns."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.arrays import converted, example_kind, make_dataset
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import BoundedStream, Dataset, Examples, Split
from accel_engine.data.dataset_entry import DatasetEntry, parse_size
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.python_source.iterable_stream import IterableStream, is_data_loader, set_pass
from accel_engine.data.python_source.py_dataset_stream import PyDatasetStream
from accel_engine.data.python_source.returned import (
    SPLIT_NAMES,
    Returned,
    is_stream,
    one_split,
    suggest_task,
    understand_returned,
)
from accel_engine.data.python_source.returned_series import windowed_returned
from accel_engine.data.python_source.source_survey import check_options, missing_image_size, user_function
from accel_engine.data.python_source.tf_data_stream import TfDataStream
from accel_engine.data.structure import ArraySpec, Batch, named_leaves
from accel_engine.data.targets import TargetForm
from accel_engine.errors import DataError, FieldValue, PlanError, join_words
from accel_engine.user_code import UserFunction, parameters

MAX_VALIDATION_BATCHES = 1_000
"""Batches of a validation stream of unknown length, which may never end, that are read if the plan does not say."""

NAMES = {
    split: Batch(f"{word} inputs", f"{word} targets", f"{word} sample weights")
    for split, word in (("train", "training"), ("validation", "validation"), ("test", "test"))
}
"""Names of the arrays of each split in messages."""


@dataclass(slots=True)
class _Source:
    """The function, and how to call it.

    Attributes:
        user: Where the function is.
        function: The function.
        options: What it is given.
        split: The split that it is asked for; ``None`` if it returns all.
    """

    user: UserFunction
    function: Callable[..., Any]
    options: DataOptions
    split: str | None = None

    def call(self) -> Any:
        """Call it, with the seed that makes its random numbers the same each time."""
        keras.utils.set_random_seed(self.options.seed)
        return self._result()

    def _result(self) -> Any:
        size = self.options.image_size
        given: dict[str, Any] = {
            "batch_size": self.options.batch_size,
            "image_size": None if size is None else parse_size(size),
            "seed": self.options.seed,
        }
        if self.split:
            given["split"] = self.split
        return self.user.call(self.function, given)

    def again(self, split: str, *, anew: bool = True) -> Any:
        """The stream of a split, when the function is called once more.

        Args:
            split: The split.
            anew: Whether everything starts once more: the module is imported again, and random numbers are those of
                the first call.
        """
        if anew:
            self.function = self.user.load()
        result = self.call() if anew else self._result()
        found = one_split(result) if self.split else understand_returned(result).splits.get(split)
        if not is_stream(found):
            raise DataError(f"returned a stream at first, and then {type(found).__name__} for {split}")
        return found


def read(entry: DatasetEntry, options: DataOptions, progress: Progress) -> Dataset:
    """Call the function, and make a dataset of what it returns.

    Args:
        entry: Has the function.
        options: What the function is given, and how arrays are split.
        progress: Not used.

    Raises:
        DataError: The function failed, or returned what cannot be trained on.
        PlanError: The plan has fields that are for tables, or an image size that the function does not ask for.
    """
    del progress
    check_options(options)
    sources, returned = _call(entry.function, options)
    if options.image_size is not None and "image_size" not in parameters(next(iter(sources.values())).function):
        raise missing_image_size(entry, options)
    if options.validation_data:
        own, validation = _call(options.validation_data, replace(options, validation_data=""), "validation_data")
        sources["validation"] = own["train"]
        returned = replace(returned, splits={**returned.splits, "validation": validation.splits["train"]})
    try:
        return _dataset(entry.name, returned, sources, options)
    except DataError as error:
        if str(error).startswith("data "):
            raise  # it names the function already
        raise DataError(f"{next(iter(sources.values())).user.title}: {error}") from error


def _call(spec: str, options: DataOptions, field: str = "data") -> tuple[dict[str, _Source], Returned]:
    """Call a function, once for each split if it asks for one."""
    user = user_function(spec, field)
    function = user.load()
    source = _Source(user, function, options)
    try:
        if "split" not in parameters(function):
            returned = understand_returned(source.call())
            return {split: replace(source) for split in SPLIT_NAMES}, returned
        sources = {split: replace(source, split=split) for split in SPLIT_NAMES}
        values = {split: each.call() for split, each in sources.items()}
        splits = {split: one_split(value) for split, value in values.items() if value is not None or split == "train"}
    except DataError as error:
        if str(error).startswith("data "):
            raise
        raise DataError(f"{user.title} {error}") from error
    return sources, Returned(splits)


def _dataset(name: str, returned: Returned, sources: Mapping[str, _Source], options: DataOptions) -> Dataset:
    if options.window is not None:
        return windowed_returned(name, returned, options)
    notes: list[str] = []
    about = dict(returned.about)
    if options.task != "auto":
        about["task"] = options.task
    arrays = {split: part for split, part in returned.splits.items() if isinstance(part, Batch)}
    streams: dict[str, Examples] = {
        split: _stream(part, split, sources[split], notes)
        for split, part in returned.splits.items()
        if not isinstance(part, Batch)
    }
    if "train" in arrays:
        if "validation" in streams:
            options = replace(options, validation_split=0.0)
        own = replace(options, task=about.get("task", "auto"), validation_data="")
        dataset = make_dataset(
            name, arrays, own, class_names=about.get("class_names", ()), add_channels=False, names=NAMES
        )
    else:
        dataset = _of_stream(name, streams["train"], about)
        for split, part in arrays.items():
            ready = converted(part, TargetForm("custom"), NAMES[split], images=False, add_channels=False)
            streams[split] = Split(*ready)
        if "validation" not in streams:
            notes.append("no validation: a stream cannot be split; return (train, validation)")
    dataset = replace(dataset, **about, notes=(*dataset.notes, *notes))
    validation, test = (streams.get(split, getattr(dataset, split)) for split in ("validation", "test"))
    if options.validation_steps is not None and (validation is None or isinstance(validation, Split)):
        reason = "only for a validation stream; arrays are used whole"
        raise PlanError("validation_steps", options.validation_steps, reason)
    dataset = replace(dataset, validation=validation, test=test)
    for split in ("validation", "test"):
        part = getattr(dataset, split)
        if part is not None:
            _check_like(dataset.spec, part.spec, split)
    return dataset


def _of_stream(name: str, train: Examples, about: Mapping[str, Any]) -> Dataset:
    inputs, targets = train.spec.inputs, train.spec.targets
    values = ValueRange(declared=False)
    if isinstance(inputs, ArraySpec) and None not in inputs.shape:
        values = ValueRange.of_array(inputs.dtype, tuple(side or 0 for side in inputs.shape))
    task = suggest_task(inputs, targets, tuple(about.get("class_names", ())))
    return Dataset(name, train, task=task, kind=example_kind(inputs, values), value_range=values)


def _stream(value: Any, split: str, source: _Source, notes: list[str]) -> Examples:
    """Make the stream of a split, and note what is special about it."""
    user, options = source.user, source.options

    def explained(doing: str) -> Any:
        return user.explained(doing)

    if isinstance(value, tf.data.Dataset):
        stream = TfDataStream(
            value,
            lambda: source.again(split),
            options.batch_size,
            explained,
            ordered=split == "train",
        )
        if stream.endless and split != "train" and not (split == "validation" and options.validation_steps):
            or_steps = (", or set ", FieldValue("validation_steps")) if split == "validation" else ()
            raise DataError(join_words((f"the {split} dataset never ends: give it an end with take()", *or_steps)))
        if stream.replays and split == "train":
            notes.append(
                "TensorFlow cannot save the position of this tf.data.Dataset, e.g. because of from_generator: to "
                "continue the run, its batches are read again from the first one"
            )
        return _noted(stream, split, options, notes, batched_here=stream.batched_here)
    if isinstance(value, keras.utils.PyDataset):
        return _noted(
            PyDatasetStream(value, lambda: source.again(split), options.seed, explained),
            split,
            options,
            notes,
        )
    return _iterable(value, split, source, notes, explained)


def _iterable(value: Any, split: str, source: _Source, notes: list[str], explained: Any) -> Examples:
    """The stream of a generator, an iterator or another iterable."""
    options = source.options
    loader = is_data_loader(value)
    current = [value]

    def start(epoch: int) -> Iterator[Any]:
        if isinstance(current[0], Iterator) and epoch:  # it has come to its end
            current[0] = source.again(split, anew=False)
        if loader:
            set_pass(current[0], options.seed + epoch)
        made = current[0]
        return iter(made() if inspect.isgeneratorfunction(made) else made)

    def again() -> None:
        current[0] = source.again(split)

    length: int | None = None
    if hasattr(value, "__len__"):
        try:
            length = len(value)
        except TypeError:  # a DataLoader of an IterableDataset
            length = None
    stream = IterableStream(
        start,
        again,
        options.seed,
        options.batch_size,
        explained,
        length=length,
        keeps_state=not loader and (split == "train" or isinstance(value, Iterator)),
    )
    if not loader and split == "train":
        notes.append("to continue the run, the batches of the function's data are read again from the first one")
    return _noted(stream, split, options, notes, batched_here=stream.batched_here)


def _noted(stream: Any, split: str, options: DataOptions, notes: list[str], *, batched_here: bool = False) -> Examples:
    if split == "train":
        if batched_here:
            notes.append(f"the data is not in batches: made batches of {options.batch_size}")
        elif stream.batch_size not in (None, options.batch_size):
            notes.append(f"the data comes in batches of {stream.batch_size}, whatever the plan's batch size")
        if stream.batches is None:
            notes.append(
                "the number of batches is unknown: an epoch ends with the data, or after the plan's steps per epoch, "
                "which endless data needs"
            )
    examples: Examples = stream
    return _bounded(stream, options, notes) if split == "validation" else examples


def _bounded(stream: Any, options: DataOptions, notes: list[str]) -> Examples:
    """A validation stream that ends: after the plan's steps, or many batches if its length is unknown."""
    if options.validation_steps is not None:
        return BoundedStream(stream, options.validation_steps)
    if stream.batches is not None:
        examples: Examples = stream
        return examples
    notes.append(
        f"the number of validation batches is unknown: {MAX_VALIDATION_BATCHES:,} are read at most; set the "
        "validation steps for another number"
    )
    return BoundedStream(stream, MAX_VALIDATION_BATCHES)


def _check_like(train: Batch, other: Batch, split: str) -> None:
    """Check that a split has the arrays of the training split."""
    for part in ("inputs", "targets"):
        own, expected = (dict(named_leaves(getattr(spec, part))) for spec in (other, train))
        if list(own) != list(expected):
            raise DataError(
                f"the {split} {part} are {_described(own)}, but the training {part} are {_described(expected)}"
            )
        for path, spec in own.items():
            like = expected[path]
            if len(spec.shape) != len(like.shape) or any(
                None not in pair and pair[0] != pair[1] for pair in zip(spec.shape, like.shape, strict=True)
            ):
                where = f" {path}" if path else ""
                raise DataError(f"the {split} {part}{where} are {spec} per example, but {like} in training")


def _described(specs: Mapping[str, ArraySpec]) -> str:
    return ", ".join(f"{path}: {spec}" if path else str(spec) for path, spec in specs.items()) or "missing"
