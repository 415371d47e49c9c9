"""Loads a trained model with its data, to use it: that of a run's checkpoint, or a ``FILE.keras``."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import keras

from accel_engine import data
from accel_engine.data.data_options import DataOptions, Progress
from accel_engine.data.dataset import Dataset, Examples, Split
from accel_engine.data.structure import Batch
from accel_engine.errors import DataError, PlanError
from accel_engine.models.build_options import BuildOptions
from accel_engine.models.loaded_data import describe_data
from accel_engine.models.saved_model import load_saved
from accel_engine.plan import Plan
from accel_engine.plan.estimate import count_steps, count_stream_steps
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.run import RunReader, diagnostics
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.run.history.chosen_checkpoint import chosen_step
from accel_engine.trained.file_data import load_for
from accel_engine.training.core.changed_data import check_restorable
from accel_engine.training.core.compiled_model import CompiledModel, compile_model
from accel_engine.training.core.readable_checkpoint import reading
from accel_engine.training.core.run_scaling import scaler
from accel_engine.training.core.saved_weights import restore_weights

SPLITS = ("auto", "test", "validation", "training")
"""Which examples are evaluated; ``auto`` is ``test`` where there are such examples, else ``validation``."""


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A trained model and the examples to evaluate it on.

    Attributes:
        name: The run's id, or the file's name.
        plan: What it was trained with, without what only training needs; of a file, only its model and data.
        dataset: The data.
        compiled: The model with its loss and metrics.
        split: The name of the split, one of :data:`SPLITS` but ``auto``, or the file name of other data.
        examples: The examples of the split.
        step: Steps that it was trained for; 0 for a file.
        notes: Warnings for the user.
    """

    name: str
    plan: Plan
    dataset: Dataset
    compiled: CompiledModel
    split: str
    examples: Examples
    step: int
    notes: tuple[str, ...]

    def prepare(self, raw: Batch) -> Batch:
        """What the model and its loss take, from raw examples; in a graph."""
        inputs = scaler(self.compiled.scaling.factor, self.dataset)(raw.inputs)
        return Batch(inputs, self.compiled.task.encode(raw.targets, inputs), raw.weights)


def load(model: ModelReference, other_data: str, split: str, checkpoint: str, progress: Progress) -> TrainedModel:
    """Load a model that an engine was asked about.

    Args:
        model: The model.
        other_data: Data to evaluate instead of a run's own; see :func:`of_run`.
        split: One of :data:`SPLITS`.
        checkpoint: Of a run; see :func:`of_run`.
        progress: Reports the number of examples read.

    Raises:
        AccelError: The model cannot be loaded, or the data does not fit it.
    """
    if model.plan is not None:
        return of_file(model.plan, split, progress)
    return of_run(model.path, other_data, split, checkpoint, progress)


def of_run(
    directory: Path,
    other_data: str,
    split: str,
    checkpoint: str,
    progress: Progress,
    *,
    keeps_raw: bool = False,
) -> TrainedModel:
    """The model of a run's checkpoint.

    Args:
        directory: The run's directory.
        other_data: Data to evaluate instead of the run's own, as of a plan; empty for the run's.
        split: One of :data:`SPLITS`.
        checkpoint: See :func:`accel_engine.run.history.chosen_checkpoint.chosen_step`.
        progress: Reports the number of examples read.
        keeps_raw: Whether the raw rows of a table are needed.

    Raises:
        AccelError: The run's model cannot be restored, or the data does not fit it.
    """
    notes: list[str] = []
    step = chosen_step(directory, notes.append, checkpoint)
    with closing(RunReader(directory)) as reader:
        trained = Plan.of_trained_run(reader.info().plan_values)
    plan, options = _with_other_data(trained, other_data) if other_data else (trained, trained.data_options)
    options = replace(options, keeps_raw=keeps_raw)
    keras.utils.set_random_seed(plan.seed)  # as in training: a function may make its data at random
    keras.config.set_dtype_policy(plan.policy)
    dataset, recorded = _loaded(plan, options, progress), diagnostics.read(directory)
    changes = check_restorable(dataset, plan, recorded)
    notes += dataset.warnings if other_data else changes
    if options.keeps_split and split != "auto":
        raise DataError(f"{other_data} is taken as a whole, not its {split} split: leave --split out")
    wanted = "validation" if other_data and split == "auto" else split
    name, examples = _chosen_examples(dataset, wanted, plan.data)
    name = Path(other_data).name if options.keeps_split else name
    compiled = compile_model(_with_steps(resolve(plan, chosen=()), dataset), dataset, recorded)
    with reading(directory / CHECKPOINTS, step) as path:
        restore_weights(compiled.model, path, averages=True)
    return TrainedModel(directory.name, plan, dataset, compiled, name, examples, step, tuple(notes))


def of_file(plan: Plan, split: str, progress: Progress) -> TrainedModel:
    """The model of a ``FILE.keras``, with its weights as they are.

    Args:
        plan: Its model, which is the file, and the data.
        split: One of :data:`SPLITS`.
        progress: Reports the number of examples read.

    Raises:
        AccelError: The model cannot be loaded, or the data does not fit it.
    """
    keras.utils.set_random_seed(plan.seed)
    options = BuildOptions(custom_objects=plan.custom_objects, unsafe=plan.unsafe_load == "on")
    dataset = load_for(load_saved(plan.model, options), plan, progress)
    name, examples = _chosen_examples(dataset, split, plan.data)
    compiled = compile_model(_with_steps(resolve(plan, chosen=()), dataset), dataset, None)
    notes = (*dataset.warnings, *compiled.notes)
    return TrainedModel(Path(plan.model).name, plan, dataset, compiled, name, examples, 0, notes)


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


def _with_other_data(plan: Plan, other: str) -> tuple[Plan, DataOptions]:
    """The plan, and the options with other validation examples, which are read and preprocessed as the run's own.

    Raises:
        PlanError: There is no such data.
    """
    own, given = data.find(plan.data), data.find(other)
    if own.is_own:
        return plan, replace(plan.data_options, validation_data=other, keeps_split=True)
    if given.is_own:
        raise PlanError("data", other, f"the run was trained on {plan.data}: give built-in data like it")
    other_plan = plan.replace(data=other)
    return other_plan, other_plan.data_options


def _with_steps(resolved: ResolvedPlan, dataset: Dataset) -> ResolvedPlan:
    resolved = resolved.with_chosen_model(describe_data(dataset, resolved.plan.task))
    train = dataset.train
    if isinstance(train, Split):
        return resolved.with_step_counts(count_steps(resolved.plan, len(train), 1))
    return resolved.with_step_counts(count_stream_steps(resolved.plan, train.batches, train.batch_size, 1))


def _chosen_examples(dataset: Dataset, split: str, name: str) -> tuple[str, Examples]:
    """The name and the examples of a split.

    Raises:
        DataError: There are none.
    """
    found: dict[str, Callable[[], Examples | None]] = {
        "test": lambda: dataset.test,
        "validation": lambda: dataset.validation,
        "training": lambda: dataset.train,
    }
    wanted = ("test", "validation") if split == "auto" else (split,)
    for each in wanted:
        examples = found[each]()
        if examples is not None and not (isinstance(examples, Split) and not len(examples)):
            return each, examples
    raise DataError(f"{name} has no {' or '.join(wanted)} examples")
