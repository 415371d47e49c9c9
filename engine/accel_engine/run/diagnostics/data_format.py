"""The form of a run's data, as runs store it: what prediction needs to know of the data once its files are gone."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from accel_engine.data.column_format import ColumnFormat
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
    """What was subtracted."""
    scale: tuple[Number, ...]
    """What was divided by then."""


@dataclass(frozen=True, slots=True)
class DataFormat:
    """The form of a run's data."""

    task: Text
    """What the model learned."""
    data_task: Text
    """The task that the data suggests."""
    kind: Text
    """What an example is, as in :class:`accel_engine.data.dataset.Dataset`."""
    inputs: JsonValue
    """The specs of an example's inputs, as of :func:`accel_engine.data.structure.specs_to_json`."""
    targets: JsonValue
    """Those of its targets."""
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
    """The same of its targets."""
