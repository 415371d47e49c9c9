"""Describes the form of a run's data for prediction, and makes what its model is built with from that form."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from accel_engine.data.dataset import Dataset
from accel_engine.data.standardization import Standardization, WindowNormalization
from accel_engine.data.structure import Batch, specs_from_json, specs_to_json
from accel_engine.data.tables.preprocessing import Preprocessing
from accel_engine.models.data_description import DataDescription
from accel_engine.models.loaded_data import describe_data
from accel_engine.plan import Plan
from accel_engine.run.diagnostics.data_items import DataFormat, TableFormat, Units


@dataclass(frozen=True, slots=True)
class NoExamples:
    """A stream without examples, which has their specs only."""

    spec: Batch
    batches: int | None = None
    batch_size: int | None = None

    def read(self, epoch: int, position: int) -> Iterator[Batch]:
        """Yield nothing."""
        yield from ()


def data_format_of(dataset: Dataset, plan: Plan, task: str) -> DataFormat | None:
    """The form of a dataset; ``None`` if its statistics are not finite numbers, which cannot be stored.

    Args:
        dataset: The data.
        plan: The run's plan.
        task: What the model learns.
    """
    described = describe_data(dataset, plan.task)
    preprocess, table, input_units = dataset.preprocess, None, None
    if isinstance(preprocess, Preprocessing):
        table = _table_format(preprocess)
    elif isinstance(preprocess, WindowNormalization):
        input_units = _units(preprocess.scaling)
    target_units = _units(dataset.target_scaling) if dataset.target_scaling else None
    numbers = [*described.target_mean, *described.target_variance]
    numbers += [*table.means, *table.scales] if table else []
    for units in (input_units, target_units):
        numbers += [*units.mean, *units.scale] if units else []
    if not np.isfinite(numbers).all():
        return None
    return DataFormat(
        task,
        dataset.task,
        dataset.kind,
        specs_to_json(dataset.spec.inputs),
        specs_to_json(dataset.spec.targets),
        dataset.value_range,
        dataset.class_names,
        dataset.feature_names,
        dataset.target_names,
        dict(dataset.target_classes),
        dataset.vocabulary,
        dataset.sample_rate,
        described.target_mean,
        described.target_variance,
        table,
        dataset.columns,
        input_units,
        target_units,
    )


def dataset_of(form: DataFormat) -> Dataset:
    """The data without its examples."""
    spec = Batch(specs_from_json(form.inputs), specs_from_json(form.targets))
    return Dataset(
        "recorded",
        NoExamples(spec),
        class_names=form.class_names,
        task=form.data_task,
        kind=form.kind,
        feature_names=form.feature_names,
        target_names=form.target_names,
        target_classes=form.target_classes,
        vocabulary=form.vocabulary,
        sample_rate=form.sample_rate,
        target_scaling=standardization(form.target_units),
        value_range=form.value_range,
    )


def description_of(form: DataFormat, plan: Plan) -> DataDescription:
    """The description that the model was built with; without texts, from which a model may learn its words."""
    return DataDescription(
        specs_from_json(form.inputs),
        specs_from_json(form.targets),
        form.class_names,
        form.vocabulary,
        form.data_task if plan.task == "auto" else plan.task,
        form.target_mean,
        form.target_variance,
        form.kind,
        form.sample_rate,
        has_standard_targets=form.target_units is not None,
        has_standard_windows=form.input_units is not None,
    )


def preprocessing_of(table: TableFormat) -> Preprocessing:
    """The preprocessing of a table's columns."""
    return Preprocessing(
        table.columns,
        Standardization(np.array(table.means), np.array(table.scales)),
        table.numbers,
        table.precise,
        table.flagged,
        table.joined,
        table.vocabularies,
        table.words,
        table.names,
    )


def standardization(units: Units | None) -> Standardization | None:
    """The statistics of some columns."""
    return Standardization(np.array(units.mean), np.array(units.scale)) if units else None


def _table_format(learned: Preprocessing) -> TableFormat:
    return TableFormat(
        learned.columns,
        tuple(learned.scaling.mean.tolist()),
        tuple(learned.scaling.scale.tolist()),
        learned.numbers,
        learned.precise,
        learned.flagged,
        learned.joined,
        dict(learned.vocabularies),
        dict(learned.words),
        dict(learned.names),
    )


def _units(scaling: Standardization) -> Units:
    return Units(tuple(scaling.mean.tolist()), tuple(scaling.scale.tolist()))
