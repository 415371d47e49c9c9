"""A run's data, as runs store it: its form, its profile, and a fingerprint.

The form is what prediction needs to know of the data once its files are gone. The profile is what a bounded sample of
its examples is like.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from accel_engine.data.data_options import ColumnFormat
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.json_values import Count, JsonValue, Number, Text


@dataclass(frozen=True, slots=True)
class TableFormat:
    """The columns of a table's inputs, and what was learned from the training rows."""

    columns: tuple[ColumnFormat, ...]
    """The columns, in the order of the file."""
    means: tuple[Number, ...]
    """Means of the numbers; see :class:`accel_engine.data.tables.preprocessing.Preprocessing` for all."""
    scales: tuple[Number, ...]
    """Their standard deviations."""
    numbers: tuple[Text, ...]
    """Keys of the numbers."""
    precise: tuple[Text, ...]
    """Keys of the numbers that need float64."""
    flagged: tuple[Text, ...]
    """Keys of the numbers that may be missing."""
    joined: tuple[Text, ...]
    """Keys of the numbers that the model's file takes as one matrix."""
    vocabularies: Mapping[str, tuple[Text, ...]]
    """Categories of each column."""
    words: Mapping[str, tuple[Text, ...]]
    """Words of each text column."""
    names: Mapping[str, Text]
    """The column of each key."""


@dataclass(frozen=True, slots=True)
class Units:
    """How columns were standardised."""

    mean: tuple[Number, ...]
    """The means that were subtracted."""
    scale: tuple[Number, ...]
    """The standard deviations by which values were divided then."""


@dataclass(frozen=True, slots=True)
class DataFormat:
    """The form of a run's data."""

    task: Text
    """The task of the model."""
    data_task: Text
    """The task that the data suggests."""
    kind: Text
    """What an example is, as in :class:`accel_engine.data.dataset.Dataset`."""
    inputs: JsonValue
    """The specs of an example's inputs, as from :func:`accel_engine.data.structure.specs_to_json`."""
    targets: JsonValue
    """The specs of its targets."""
    value_range: ValueRange
    """The range of the inputs' values."""
    class_names: tuple[Text, ...] = ()
    """Names of the classes."""
    feature_names: tuple[Text, ...] = ()
    """Names of the columns of the inputs."""
    target_names: tuple[Text, ...] = ()
    """Names of the columns of the targets."""
    target_classes: Mapping[str, tuple[Text, ...]] = field(default_factory=dict)
    """Names of the classes of each of several targets that are classes."""
    vocabulary: tuple[Text, ...] = ()
    """The text of each token."""
    sample_rate: Count = 0
    """Samples per second of audio; 0 for other data."""
    target_mean: tuple[Number, ...] = ()
    """Means of a regression's targets, with which its model was built."""
    target_variance: tuple[Number, ...] = ()
    """Their variances."""
    table: TableFormat | None = None
    """What a table's inputs are made of; ``None`` for other data."""
    columns: tuple[ColumnFormat, ...] = ()
    """How the columns of a time series in a table were read."""
    input_units: Units | None = None
    """How the columns of a time series were standardised; ``None`` if they were not."""
    target_units: Units | None = None
    """The same for its targets."""


@dataclass(frozen=True, slots=True)
class DataFingerprint:
    """Hashes of a run's data when its training began."""

    parts: Mapping[str, Text]
    """Hashes, by what they are of; see :mod:`accel_engine.data.fingerprint`."""


@dataclass(frozen=True, slots=True)
class InputProfile:
    """The numbers of some inputs, as the model gets them."""

    low: Number | None
    """The smallest finite value; ``None`` if there is none, here and below."""
    high: Number | None
    """The largest one."""
    mean: Number | None
    """Their mean."""
    deviation: Number | None
    """Their standard deviation, over all features."""
    not_finite: Number
    """Share of the values that are NaN or infinite, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Shift:
    """The feature whose mean differs most between training and validation."""

    feature: Text
    """Its index in the flat example, or the name of its column."""
    deviations: Number
    """Difference of the means over the standard deviation in training; values outside of the middle 98% in training
    count as the nearest within."""
    errors: Number
    """The same over the standard error of the difference."""
    features: Count
    """Number of features that differ by half a standard deviation or more, and 6 standard errors."""


@dataclass(frozen=True, slots=True)
class DataProfile:
    """A profile of a run's data when its training began; ``None`` for figures not measured, or that do not apply."""

    examples: Count
    """Number of training examples whose values were looked at."""
    validation_examples: Count = 0
    """The same for validation."""
    features: Count = 0
    """Numbers of an example; 0 if inputs are not numbers, or tokens."""
    inputs: InputProfile | None = None
    """Training inputs as the model gets them, before any layer of it."""
    validation_inputs: InputProfile | None = None
    """The same for validation."""
    continuous_features: Count | None = None
    """Features with more than 8 values, of those that were looked at, scaled up to all."""
    constant_features: Count | None = None
    """Features with one value in all training examples that were looked at."""
    feature_scales: Number | None = None
    """Standard deviation of the widest feature over the narrowest one's, without the outer 5% and without
    constant ones; of matrices of features only, not of images, series or tokens."""
    shift: Shift | None = None
    """The feature whose mean differs most between training and validation."""
    classes: tuple[Count, ...] = ()
    """Training examples of each class, all that are in memory; empty if targets are not classes."""
    validation_classes: tuple[Count, ...] = ()
    """The same for validation."""
    neighbours: Number | None = None
    """Share of examples whose nearest neighbour in another place has the same class; of numbers to predict, the
    correlation of an example's with its neighbour's."""
    neighbours_chance: Number | None = None
    """What it would be if targets had nothing to do with inputs."""
    neighbours_examples: Count = 0
    """Number of examples that it is measured with."""
    target_mean: Number | None = None
    """Mean of targets that are one number each."""
    target_deviation: Number | None = None
    """Their standard deviation."""
    target_low: Number | None = None
    """The smallest of them."""
    target_high: Number | None = None
    """The largest one."""
    targets_not_finite: Number | None = None
    """Share of target values that are NaN or infinite, 0 to 1."""
    compared: Count = 0
    """Number of training examples that were compared with each other, and with ``compared_validation``."""
    compared_validation: Count = 0
    """Number of validation examples that were compared with these."""
    of_examples: Count = 0
    """Number of all training examples; 0 if unknown."""
    duplicates: Count = 0
    """Compared training examples with the same inputs as another one before."""
    conflicts: Count = 0
    """Duplicates whose target is another."""
    leaked: Count = 0
    """Compared validation examples that are compared training examples, too: with equal inputs and targets."""
    class_runs: Number | None = None
    """Share of training examples with the same class as the one before them in the data."""
