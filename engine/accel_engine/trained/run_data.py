"""Opens the data of a trained run, other data in its place, or only the form of its data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras

from accel_engine import data
from accel_engine.data.class_weight import weighted
from accel_engine.data.data_options import DataOptions, Progress, without_skip
from accel_engine.data.dataset import BoundedStream, Dataset, Examples, Split
from accel_engine.data.python_source.returned_dataset import MAX_VALIDATION_BATCHES
from accel_engine.data.structure import describe, has_texts, specs_from_json, specs_to_json
from accel_engine.errors import DataError, PlanError
from accel_engine.models.data_description import DataDescription
from accel_engine.models.loaded_data import describe_data
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import DataFormat, Diagnostics
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.training.core.changed_data import check_restorable
from accel_engine.training.reporting.data_formats import dataset_of, description_of

SPLITS = ("auto", "test", "validation", "training")
"""Which examples are used; ``auto`` is ``test`` where there are such examples, else ``validation``."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenedData:
    """The data with which a trained model is opened."""

    plan: Plan
    """What the model was trained with, without what only training needs."""
    dataset: Dataset
    """The data; without examples, if none were wanted."""
    description: DataDescription
    """For building the model."""
    split: str
    """The name of the split, one of :data:`SPLITS` but ``auto``, or the file name of other data; empty without
    examples."""
    examples: Examples
    """The examples of the split."""
    form: DataFormat | None = None
    """The form of the data that the run has recorded, if it was opened without its data."""
    saved: Path | None = None
    """The file with the whole model, where only that tells the words of its texts."""
    notes: tuple[str, ...] = ()
    """Warnings for the user."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        dataset: Dataset,
        split: str,
        notes: tuple[str, ...],
        *,
        is_whole: bool = False,
        steps: int | None = MAX_VALIDATION_BATCHES,
    ) -> "OpenedData":
        """The examples of a split.

        Args:
            plan: The plan.
            dataset: Its data.
            split: One of :data:`SPLITS`.
            notes: Warnings for the user.
            is_whole: Whether data without such examples is one whole, which has the name of its file.
            steps: How many batches of training examples whose number is unknown are read, as they may never end;
                ``None`` for all, where an epoch is all of them.

        Raises:
            DataError: The data has no such examples.
        """
        name, examples = _chosen_examples(dataset, split, plan.data, is_whole=is_whole)
        if examples is dataset.train and not isinstance(examples, Split) and examples.batches is None and steps:
            examples = BoundedStream(examples, steps)
            notes = (*notes, f"the number of {name} batches is unknown: {steps:,} are read at most")
        return cls(plan, dataset, describe_data(dataset, plan.task), name, examples, notes=notes)


def form_of_data(directory: Path, values: Mapping[str, Any], recorded: Diagnostics) -> OpenedData | None:
    """A run's data without its examples, which may be gone; ``None`` where only the data tells what a model is.

    Args:
        directory: The run's directory.
        values: The run's plan.
        recorded: The run's diagnostics.

    Raises:
        PlanError: A field of the plan is invalid.
    """
    form, saved = recorded.format, trained_model(directory)
    if form is None or ((is_text := has_texts(specs_from_json(form.inputs))) and saved is None):
        return None  # a run that trains has no file yet, and only its data tells the words of texts
    try:
        plan = Plan.of_trained_run(values)
    except PlanError as error:
        if error.field not in ("data", "validation_data"):
            raise
        plan = Plan.of_trained_run({**values, "data": "digits", "validation_data": ""})  # nothing is read of it
    dataset = dataset_of(form)
    return OpenedData(plan, dataset, description_of(form, plan), "", dataset.train, form, saved if is_text else None)


def load_data(
    values: Mapping[str, Any], recorded: Diagnostics, other: str, split: str, progress: Progress, *, keeps_raw: bool
) -> OpenedData:
    """A run's data, or other data.

    Args:
        values: The run's plan.
        recorded: The run's diagnostics.
        other: Data to use instead of the run's, as in the field ``data`` of a plan; empty for the run's.
        split: One of :data:`SPLITS`.
        progress: Reports the number of examples read.
        keeps_raw: Whether the raw rows of a table are needed.

    Raises:
        AccelError: The data cannot be read, means something else than in training, or has no such examples.
    """
    trained = Plan.of_trained_run(values)
    plan, options = _with_other_data(trained, other) if other else (trained, trained.data_options)
    keras.utils.set_random_seed(plan.seed)  # as in training: a function may make its data at random
    keras.config.set_dtype_policy(plan.policy)
    dataset = _loaded(plan, replace(options, keeps_raw=keeps_raw, class_weight=()), progress)
    # The weights of classes are for training only, but they are in the fingerprint of what was trained on.
    changes = check_restorable(weighted(dataset, options) if options.class_weight else dataset, plan, recorded)
    if options.keeps_split and recorded.format and recorded.format.inputs != specs_to_json(dataset.spec.inputs):
        trained_on, found = describe(specs_from_json(recorded.format.inputs)), describe(dataset.spec.inputs)
        raise DataError(f"the run was trained on {trained_on}, but its data is read as {found} now: restore it")
    notes = dataset.warnings if other else tuple(changes)
    if not options.keeps_split:
        wanted = "validation" if other and split == "auto" else split
        return OpenedData.of(plan, dataset, wanted, notes, steps=values.get("steps_per_epoch"))
    if split != "auto":
        raise DataError(f"{other} is taken as a whole, not its {split} split: leave --split out")
    return replace(OpenedData.of(plan, dataset, "validation", notes), split=Path(other).name)


def _loaded(plan: Plan, options: DataOptions, progress: Progress) -> Dataset:
    """Load a run's data, with other validation examples if the options name them.

    Raises:
        PlanError: The other examples cannot be used; an error of ``data``, as which they were given.
        DataError: The data cannot be read.
    """
    try:
        return data.load(plan.data, options, progress)
    except PlanError as error:
        if options.keeps_split and error.field == "validation_data":
            raise PlanError("data", options.validation_data, *error.reason) from error
        raise
    except DataError as error:
        raise without_skip(error) from error


def _with_other_data(plan: Plan, other: str) -> tuple[Plan, DataOptions]:
    """The plan, and the options with other validation examples, which are read and preprocessed as the run's own.

    Raises:
        PlanError: There is no such data.
    """
    own, given = data.find(plan.data), data.find(other)
    if own.is_own:
        share = 0.0 if plan.validation_data else plan.validation_split
        return plan, replace(plan.data_options, validation_data=other, validation_split=share, keeps_split=True)
    if given.is_own:
        raise PlanError("data", other, f"the run was trained on {plan.data}: give built-in data like it")
    other_plan = plan.replace(data=other)
    return other_plan, other_plan.data_options


def _chosen_examples(dataset: Dataset, split: str, name: str, *, is_whole: bool) -> tuple[str, Examples]:
    """The name and the examples of a split; see :meth:`OpenedData.of`.

    Raises:
        DataError: The data has no such examples.
    """
    found = {"test": dataset.test, "validation": dataset.validation, "training": dataset.train}
    wanted = ("test", "validation") if split == "auto" else (split,)
    for each in wanted:
        examples = found[each]
        if examples is not None and not (isinstance(examples, Split) and not len(examples)):
            return each, examples
    if is_whole:
        return Path(name).name, dataset.train
    raise DataError(f"{name} has no {' or '.join(wanted)} examples")
