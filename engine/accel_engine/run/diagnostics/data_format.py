"""The form of a run's data, as runs store it: what prediction needs to know of the data once its files are gone."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from accel_engine.data.column_format import ColumnFormat
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.json_values import Count, JsonValue, Number, Text


@dataclass(frozen=True, slots=True)
class TableFormat:
    """The columns of a table's inputs, and what was learned from the training rows.

    Attributes:
        columns: The columns, in the order of the file.
        means: Means of the numbers; see :class:`accel_engine.data.tables.preprocessing.Preprocessing` for all.
        scales: Their standard deviations.
        numbers: Keys of the numbers.
        precise: Keys of the numbers that need float64.
        flagged: Keys of the numbers that may be missing.
        joined: Keys of the numbers that the model's file takes as one matrix.
        vocabularies: Categories of each column.
        words: Words of each text column.
        names: The column of each key.
    """

    columns: tuple[ColumnFormat, ...]
    means: tuple[Number, ...]
    scales: tuple[Number, ...]
    numbers: tuple[Text, ...]
    precise: tuple[Text, ...]
    flagged: tuple[Text, ...]
    joined: tuple[Text, ...]
    vocabularies: Mapping[str, tuple[Text, ...]]
    words: Mapping[str, tuple[Text, ...]]
    names: Mapping[str, Text]


@dataclass(frozen=True, slots=True)
class Units:
    """How columns were standardised.

    Attributes:
        mean: What was subtracted.
        scale: What was divided by then.
    """

    mean: tuple[Number, ...]
    scale: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class DataFormat:
    """The form of a run's data.

    Attributes:
        task: What the model learned.
        data_task: The task that the data suggests.
        kind: What an example is, as in :class:`accel_engine.data.dataset.Dataset`.
        inputs: The specs of an example's inputs, as of :func:`accel_engine.data.structure.specs_to_json`.
        targets: Those of its targets.
        value_range: The range of the inputs' values.
        class_names: Names of the classes.
        feature_names: Names of the columns of the inputs.
        target_names: Names of the columns of the targets.
        target_classes: Names of the classes of each of several targets that are classes.
        vocabulary: The text of each token.
        sample_rate: Samples per second of audio; 0 for other data.
        target_mean: Means of a regression's targets, with which its model was built.
        target_variance: Their variances.
        table: What a table's inputs are made of; ``None`` for other data.
        columns: How the columns of a time series in a table were read.
        input_units: How the columns of a time series were standardised; ``None`` if they were not.
        target_units: The same of its targets.
    """

    task: Text
    data_task: Text
    kind: Text
    inputs: JsonValue
    targets: JsonValue
    value_range: ValueRange
    class_names: tuple[Text, ...] = ()
    feature_names: tuple[Text, ...] = ()
    target_names: tuple[Text, ...] = ()
    target_classes: Mapping[str, tuple[Text, ...]] = field(default_factory=dict)
    vocabulary: tuple[Text, ...] = ()
    sample_rate: Count = 0
    target_mean: tuple[Number, ...] = ()
    target_variance: tuple[Number, ...] = ()
    table: TableFormat | None = None
    columns: tuple[ColumnFormat, ...] = ()
    input_units: Units | None = None
    target_units: Units | None = None
