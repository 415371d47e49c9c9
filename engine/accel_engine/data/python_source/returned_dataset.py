"""Calls a function of the user, and makes a dataset of what it returns."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.array_checks import check_like
from accel_engine.data.arrays import converted, example_kind, make_dataset
from accel_engine.data.data_options import SPLIT_NAMES, DataOptions
from accel_engine.data.dataset import BoundedStream, Dataset, Examples, Split
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.data.python_source import missing_image_size, user_function
from accel_engine.data.python_source.iterable_streams import IterableStream, PyDatasetStream, is_data_loader, set_pass
from accel_engine.data.python_source.pass_stream import PassStream
from accel_engine.data.python_source.returned import (
    Returned,
    is_stream,
    one_split,
    suggest_task,
    understand_returned,
)
from accel_engine.data.python_source.tf_data_stream import TfDataStream
from accel_engine.data.series.array_series import windowed_splits
from accel_engine.data.source import DatasetEntry, parse_size
from accel_engine.data.splits import of_own_splits, without_shares
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

SERIES = Batch("x", "y", "sample_weight")
"""Names of the arrays of a series in the plan; arrays of a dictionary have the names that they have there."""


@dataclass(slots=True)
class _Call:
    """The function, and what it is given."""

    user: UserFunction
    """Where the function is."""
    function: Callable[..., Any]
    options: DataOptions
    """The options that the function gets."""
    split: str | None = None
    """The split that it is asked for; ``None`` if it returns all."""

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
            anew: Whether everything starts once more: the module is imported again, and random numbers are the
                same as in the first call.
        """
        if anew:
            self.function = self.user.load()
        result = self.call() if anew else self._result()
        found = one_split(result) if self.split else understand_returned(result).splits.get(split)
        if not is_stream(found):
            raise DataError(f"returned a stream at first, and then {type(found).__name__} for {split}")
        return found


def load_returned(entry: DatasetEntry, options: DataOptions) -> Dataset:
    """Call the function of an entry, and make a dataset of what it returns.

    Args:
        entry: Has the function.
        options: What the function is given, and how arrays are split.

    Raises:
        DataError: The function failed, or returned what cannot be trained on.
        PlanError: The plan has an image size that the function does not ask for.
    """
    calls, returned = _call(entry.function, options)
    if options.image_size is not None and "image_size" not in parameters(calls["train"].function):
        raise missing_image_size(entry.name, options)
    if options.validation_data:
        own, validation = _call(options.validation_data, replace(options, validation_data=""), "validation_data")
        options = of_own_splits(options, returned.splits)
        calls["validation"] = own["train"]
        returned = replace(returned, splits={**returned.splits, "validation": validation.splits["train"]})
    with _titled(f"{calls['train'].user.title}:"):
        return _dataset(entry.name, returned, calls, options)


@contextmanager
def _titled(title: str) -> Iterator[None]:
    """Begin errors with the function, unless they name it already."""
    try:
        yield
    except DataError as error:
        if str(error).startswith("data "):
            raise
        raise DataError(f"{title} {error}") from error


def _call(spec: str, options: DataOptions, field: str = "data") -> tuple[dict[str, _Call], Returned]:
    """Call a function, once for each split if it asks for one."""
    user = user_function(spec, field)
    function = user.load()
    call = _Call(user, function, options)
    with _titled(user.title):
        if "split" not in parameters(function):
            return {split: replace(call) for split in SPLIT_NAMES}, understand_returned(call.call())
        calls = {split: replace(call, split=split) for split in SPLIT_NAMES}
        values = {split: each.call() for split, each in calls.items()}
        given = {split: value for split, value in values.items() if value is not None or split == "train"}
        return calls, Returned({split: one_split(value) for split, value in given.items()})


def _dataset(name: str, returned: Returned, calls: Mapping[str, _Call], options: DataOptions) -> Dataset:
    if options.window is not None:
        return _windowed(name, returned, options)
    notes: list[str] = []
    about = dict(returned.about)
    if options.task != "auto":
        about["task"] = options.task
    arrays = {split: part for split, part in returned.splits.items() if isinstance(part, Batch)}
    streams: dict[str, Examples] = {
        split: _stream(part, split, calls[split], notes)
        for split, part in returned.splits.items()
        if split not in arrays
    }
    if "train" in arrays:
        own = without_shares(options, validation="validation" in streams, test="test" in streams)
        own = replace(own, task=about.get("task", "auto"))
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
    others = {split: streams.get(split, getattr(dataset, split)) for split in ("validation", "test")}
    if options.validation_steps is not None and isinstance(others["validation"], Split | None):
        reason = "only for a validation stream; arrays are used whole"
        raise PlanError("validation_steps", options.validation_steps, reason)
    for split, part in others.items():
        if part is not None:
            check_like(part.spec, dataset.spec, NAMES[split], NAMES["train"])
    return replace(dataset, **about, **others, notes=(*dataset.notes, *notes))


def _of_stream(name: str, train: Examples, about: Mapping[str, Any]) -> Dataset:
    inputs, targets = train.spec.inputs, train.spec.targets
    values = ValueRange(declared=False)
    if isinstance(inputs, ArraySpec) and None not in inputs.shape:
        values = ValueRange.of_array(inputs.dtype, tuple(side or 0 for side in inputs.shape))
    task = suggest_task(inputs, targets, tuple(about.get("class_names", ())))
    return Dataset(name, train, task=task, kind=example_kind(inputs, values), value_range=values)


def _stream(value: Any, split: str, call: _Call, notes: list[str]) -> Examples:
    """Make the stream of a split, and note what is special about it."""
    options = call.options
    stream: PassStream
    if isinstance(value, tf.data.Dataset):
        stream = _tf_data(value, split, call)
    elif isinstance(value, keras.utils.PyDataset):
        stream = PyDatasetStream(value, lambda: call.again(split), options.seed, call.user.explained)
    else:
        stream = _iterable(value, split, call)
    if split == "train":
        notes += _notes(stream, options)
    return _bounded(stream, options, notes) if split == "validation" else stream


def _tf_data(value: tf.data.Dataset, split: str, call: _Call) -> TfDataStream:
    options = call.options
    stream = TfDataStream(
        value, lambda: call.again(split), options.batch_size, call.user.explained, ordered=split == "train"
    )
    if stream.endless and split != "train" and not (split == "validation" and options.validation_steps):
        or_steps = (", or set ", FieldValue("validation_steps")) if split == "validation" else ()
        raise DataError(join_words((f"the {split} dataset never ends: give it an end with take()", *or_steps)))
    return stream


def _iterable(value: Any, split: str, call: _Call) -> IterableStream:
    """The stream of a generator, an iterator or another iterable."""
    options, loader, current = call.options, is_data_loader(value), [value]

    def start(epoch: int) -> Iterator[Any]:
        if isinstance(current[0], Iterator) and epoch:  # it has come to its end
            current[0] = call.again(split, anew=False)
        if loader:
            set_pass(current[0], options.seed + epoch)
        made = current[0]
        return iter(made() if inspect.isgeneratorfunction(made) else made)

    def again() -> None:
        current[0] = call.again(split)

    length: int | None = None
    with suppress(TypeError):  # it has none, such as a generator or a DataLoader of an IterableDataset
        length = len(value)
    return IterableStream(
        start,
        again,
        options.seed,
        options.batch_size,
        call.user.explained,
        length=length,
        keeps_state=not loader and (split == "train" or isinstance(value, Iterator)),
    )


def _notes(stream: PassStream, options: DataOptions) -> Iterator[str]:
    """Notes on a training stream."""
    if stream.read_again:
        yield f"{stream.read_again} are read again from the first one to continue the run"
    if stream.batched_here:
        yield f"the data is not in batches: made batches of {options.batch_size}"
    elif stream.batch_size not in (None, options.batch_size):
        yield f"the data comes in batches of {stream.batch_size}, whatever the plan's batch size"
    if stream.batches is None:
        yield (
            "the number of batches is unknown: an epoch ends with the data, or after the plan's steps per epoch, "
            "which endless data needs"
        )


def _bounded(stream: PassStream, options: DataOptions, notes: list[str]) -> Examples:
    """A validation stream that ends: after the plan's steps, or many batches if its length is unknown."""
    if options.validation_steps is not None:
        return BoundedStream(stream, options.validation_steps)
    if stream.batches is not None:
        return stream
    notes.append(
        f"the number of validation batches is unknown: {MAX_VALIDATION_BATCHES:,} are read at most; set the "
        "validation steps for another number"
    )
    return BoundedStream(stream, MAX_VALIDATION_BATCHES)


def _windowed(name: str, returned: Returned, options: DataOptions) -> Dataset:
    """Make a dataset of the windows of arrays ``[rows]`` or ``[rows, columns]``."""
    splits = {}
    for split, part in returned.splits.items():
        if not isinstance(part, Batch):
            reason = f"needs arrays, as windows of a stream may overlap its batches; the {split} data is a stream"
            raise PlanError("window", options.window, reason)
        if part.weights is not None:
            raise PlanError("window", options.window, "windows have no sample weights; return x or (x, y)")
        splits[split] = _named(part, options)
    return windowed_splits(name, splits, options)


def _named(part: Batch, options: DataOptions) -> dict[str, Any]:
    """The arrays by name, without those that the plan ignores."""
    leaves = [
        leaf
        for each, name in zip(part, SERIES, strict=True)
        for leaf in named_leaves(each, "" if isinstance(each, dict) else name)
    ]
    names = [name for name, _ in leaves]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"inputs and targets both have an array {twice[0]!r}; give them different names")
    arrays = {name: array for name, array in leaves if name not in options.ignore}
    if not arrays:
        raise PlanError("ignore", options.ignore, "no array is left")
    return arrays
