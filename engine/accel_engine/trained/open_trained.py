"""Opens a trained model to use it, from a run's checkpoint or from a file.

Only this module decides what is read of a run's plan, which checkpoint is used, in which precision, and what a model
file without a run means. What is done with a trained model is a function over the :class:`TrainedModel`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import keras
import tensorflow as tf

from accel_engine import models
from accel_engine.data import find
from accel_engine.data.data_options import Progress, no_progress
from accel_engine.data.dataset import Dataset, Examples
from accel_engine.data.structure import Batch, Structure, map_structure
from accel_engine.errors import ModelError, RunError, join_words
from accel_engine.keras_support.losses import logits_note, tversky_note
from accel_engine.keras_support.model_structure import fixed_batch, has_custom_train_step
from accel_engine.models.build import output_specs
from accel_engine.models.exported_model import categories
from accel_engine.models.model_call import call_model
from accel_engine.models.model_entry import BuildOptions
from accel_engine.models.saved_model import UNSAFE_NOTE, load_saved
from accel_engine.models.traits import returns_logits
from accel_engine.plan import Plan
from accel_engine.requests.protocol.request import unheard
from accel_engine.run import diagnostics, read_run
from accel_engine.run.diagnostics import DataFormat, Diagnostics, InputSpec
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.run.history.chosen_checkpoint import chosen_step
from accel_engine.trained.file_data import load_for
from accel_engine.trained.kept_model import forget_kept_model, opened_once
from accel_engine.trained.model_file import describe_file
from accel_engine.trained.outputs import OutputForm, output_forms
from accel_engine.trained.run_data import OpenedData, form_of_data, load_data
from accel_engine.training.core.compiled_model import build_plan_model
from accel_engine.training.core.metric_building import Measures, measures_of
from accel_engine.training.core.recipe.loss import change_loss, choose_loss
from accel_engine.training.core.run_scaling import decide_scaling, scaler
from accel_engine.training.core.saved_weights import restore_weights, whole_checkpoint
from accel_engine.training.core.task import INPUTS, Task, task_of_model
from accel_engine.training.evaluation.task_report import input_spec_of
from accel_engine.training.model_analysis.layer_table import changed_layer
from accel_engine.training.reporting.data_formats import data_format_of, dataset_of


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model, and what it is used with.

    Attributes:
        name: The run's id, or the file's name.
        step: Steps that it was trained for; 0 for a file.
        plan: The run's plan without the fields that only training needs; for a file, its model and data only.
        is_file: Whether it was opened from a file, not from a run.
        model: The model with its weights, its loss and its own metrics.
        task: What it learned.
        outputs: The specs of its outputs, with the dimension of the batch; ``None`` if the model cannot be called.
        output_names: The names of its outputs, where they are a list.
        scale: The factor that raw inputs are multiplied by.
        outputs_of: Computes its outputs for raw inputs; in a graph, too.
        metrics: What is measured besides the model's own metrics; empty if it was opened without data.
        dataset: The data; without examples, if it was opened without data.
        split: The name of the split, or the file name of other data; empty if it was opened without data.
        examples: The examples of the split.
        input_spec: How raw inputs look, and become an example; ``None`` if unknown.
        categories: The categories of a table's inputs, where only the file of the model tells them.
        notes: Warnings for the user.
        recorded_form: The form of the data as the run or file has it, if it was opened without data.
    """

    name: str
    step: int
    plan: Plan
    is_file: bool
    model: keras.Model
    task: Task
    outputs: Structure
    output_names: Sequence[str]
    scale: float
    outputs_of: Callable[[Structure], Structure]
    metrics: tuple[keras.Metric, ...]
    dataset: Dataset
    split: str
    examples: Examples
    input_spec: InputSpec | None
    categories: Mapping[str, Sequence[str]]
    notes: tuple[str, ...]
    recorded_form: DataFormat | None

    def prepare(self, raw: Batch) -> Batch:
        """Prepare raw examples for the model and its loss; in a graph."""
        inputs = scaler(self.scale, self.dataset)(raw.inputs)
        return Batch(inputs, self.task.encode(raw.targets, inputs), raw.weights)

    @cached_property
    def form(self) -> DataFormat:
        """The form of its data.

        Raises:
            ModelError: The data has statistics that are not finite.
        """
        if form := self.recorded_form or data_format_of(self.dataset, self.plan, self.task.name):
            return form
        raise ModelError(f"the data of {self.name} has statistics that are not finite")

    @cached_property
    def output_forms(self) -> tuple[OutputForm, ...]:
        """The meaning of each of its outputs."""
        loss = getattr(self.model, "loss", None)
        return output_forms(self.outputs, loss, self.form, self.task, self.dataset.spec.targets, self.output_names)

    @property
    def limits(self) -> tuple[float, float] | None:
        """The values of its outputs that are black and white, where it reconstructs its inputs."""
        spec = self.input_spec
        return (spec.low * self.scale, spec.high * self.scale) if spec and self.task.encoding == INPUTS else None


def open_trained(
    reference: Path | Plan,
    *,
    data: str | None = "",
    split: str = "auto",
    checkpoint: str = "auto",
    keeps_raw: bool = False,
    progress: Progress = no_progress,
    doing: Callable[[str], object] = unheard,
) -> TrainedModel:
    """Open a trained model.

    Args:
        reference: The directory of its run; or a plan that names the file of a model, and data.
        data: Data to use instead of a run's, as a plan names it; empty for the run's own; ``None`` for no examples:
            then a run's data is read only where nothing else describes it, such as the words of texts. With a plan,
            its own data is used unless this is ``None``.
        split: One of :data:`accel_engine.trained.run_data.SPLITS`.
        checkpoint: Of a run: see :func:`accel_engine.run.history.chosen_checkpoint.chosen_step`.
        keeps_raw: Whether the raw rows of a table are needed.
        progress: Reports the number of examples read.
        doing: Called with what is being done, in words.

    Raises:
        AccelError: The model cannot be loaded or restored, or the data does not fit it.
    """
    if isinstance(reference, Plan):
        doing("opening the model")
        if data is None:
            return _open_file_alone(reference)
        return _open_file(reference, split, progress, is_other=bool(data))
    notes: list[str] = []
    step = chosen_step(reference, notes.append, checkpoint)

    def restore() -> TrainedModel:
        return _restore_run(
            reference, step, data=data, split=split, keeps_raw=keeps_raw, progress=progress, doing=doing
        )

    if data is None:
        trained = opened_once(reference, step, restore, lambda made: made.recorded_form is not None)
    else:
        forget_kept_model()
        trained = restore()
    return replace(trained, notes=(*notes, *trained.notes))


def _restore_run(
    reference: Path,
    step: int,
    *,
    data: str | None,
    split: str,
    keeps_raw: bool,
    progress: Progress,
    doing: Callable[[str], object],
) -> TrainedModel:
    """The model of a run with the weights of a step; see :func:`open_trained`."""
    values = read_run(reference).plan_values
    recorded = diagnostics.read(reference)
    source = form_of_data(reference, values, recorded) if data is None else None
    if source is None:
        doing("reading the data")
        source = load_data(values, recorded, data or "", split, progress, keeps_raw=keeps_raw)
    doing("opening the model")
    keras.config.set_dtype_policy(source.plan.policy)
    model = _built(source)
    notes = _changes_of(model, source.plan, recorded, reference.name)
    trained = _trained_model(reference.name, step, model, source, recorded)
    with whole_checkpoint(reference / CHECKPOINTS, step) as path:
        restore_weights(model, path, averages=True)
    return replace(trained, notes=(*notes, *source.notes))  # what else there is to note, the run said in training


def _built(source: OpenedData) -> keras.Model:
    """The model of a run, before its weights are restored."""
    if source.saved is not None:
        return load_saved(str(source.saved), _options(source.plan))
    return build_plan_model(source.plan, source.description)


def _changes_of(model: keras.Model, plan: Plan, recorded: Diagnostics, run: str) -> list[str]:
    """A warning if the user has changed the model since the run was trained.

    Raises:
        RunError: A built-in model has changed, with the version of the program.
    """
    change = changed_layer(model, recorded.layers)
    if change and not isinstance(models.find(plan.model), models.UserModel):
        raise RunError(f"run {run} was trained with another version of model {plan.model}: {change}")
    return [f"the model has changed since the run was trained: {change}"] if change else []


def _open_file(plan: Plan, split: str, progress: Progress, *, is_other: bool) -> TrainedModel:
    """The model of a file, with the file's weights, and the data of a plan, which a request may have given for it."""
    keras.utils.set_random_seed(plan.seed)
    keras.config.set_dtype_policy(plan.policy)
    # Other data is one whole, as it is for a run, if it has no splits of its own and none is asked for.
    is_whole = is_other and split == "auto" and find(plan.data).is_own
    loaded = plan.replace(split="none") if is_whole else plan
    dataset = load_for(load_saved(plan.model, _options(plan)), loaded, progress)
    source = OpenedData.of(plan, dataset, split, dataset.warnings, is_whole=is_whole)
    model = build_plan_model(plan, source.description)
    return _trained_model(Path(plan.model).name, 0, model, source, None)


def _open_file_alone(plan: Plan) -> TrainedModel:
    """The model of a file, without data. Only classifiers that this program exported have the names of their classes.

    Raises:
        ModelError: The model has no inputs of a known shape, or no outputs of numbers.
    """
    keras.config.set_dtype_policy(plan.policy)
    model, name = load_saved(plan.model, _options(plan)), Path(plan.model).name
    found = describe_file(model, name)
    dataset = dataset_of(found.form)
    return TrainedModel(
        name,
        0,
        plan,
        is_file=True,
        model=model,
        task=found.task,
        outputs=found.outputs,
        output_names=found.output_names,
        scale=1.0,
        outputs_of=found.outputs_of,
        metrics=(),
        dataset=dataset,
        split="",
        examples=dataset.train,
        input_spec=None,
        categories=categories(model),
        notes=(),
        recorded_form=found.form,
    )


def _options(plan: Plan) -> BuildOptions:
    return BuildOptions(custom_objects=plan.custom_objects, unsafe=plan.unsafe_load == "on")


def _trained_model(
    name: str, step: int, model: keras.Model, source: OpenedData, recorded: Diagnostics | None
) -> TrainedModel:
    """Give a model its loss, its task and its metrics.

    Args:
        name: The run's id, or the file's name.
        step: Steps that it was trained for.
        model: Built, with any weights.
        source: Its data.
        recorded: The diagnostics of its run; ``None`` for the model of a file.

    Raises:
        AccelError: The data does not fit it.
    """
    plan, dataset, has_data = source.plan, source.dataset, source.form is None
    recorded_input = recorded.input_spec if recorded else None
    scaling = decide_scaling(plan, dataset, model, recorded_input)
    outputs = output_specs(model, source.description)
    notes = [UNSAFE_NOTE] if plan.unsafe_load == "on" else []
    notes += [join_words(scaling.note), *_give_loss(model, outputs, dataset, plan), logits_note(model)]
    notes += [tversky_note(model.loss)]
    task = task_of_model(model, outputs, dataset, plan)
    measures = Measures()
    if has_data and not has_custom_train_step(model):
        batch = fixed_batch(model) or plan.batch_size
        measures = measures_of(model, task, outputs, dataset, plan, batch)
    scaled = scaler(scaling.factor, dataset)

    def outputs_of(raw: Structure) -> Structure:
        return call_model(model, scaled(map_structure(tf.convert_to_tensor, raw)), training=False)

    return TrainedModel(
        name,
        step,
        plan,
        is_file=recorded is None,
        model=model,
        task=task,
        outputs=outputs,
        output_names=getattr(model, "output_names", None) or (),
        scale=scaling.factor,
        outputs_of=outputs_of,
        metrics=measures.metrics,
        dataset=dataset,
        split=source.split,
        examples=source.examples,
        input_spec=recorded_input or (input_spec_of(dataset, scaling.factor) if has_data else None),
        categories={},
        notes=(*source.notes, *filter(None, (*notes, task.note, *measures.notes))),
        recorded_form=source.form,
    )


def _give_loss(model: keras.Model, outputs: Structure, dataset: Dataset, plan: Plan) -> list[str]:
    """Compile an uncompiled model with a loss; a compiled one keeps what the plan does not override; returns notes."""
    if model.compiled:
        return [] if has_custom_train_step(model) else change_loss(model, outputs, dataset, plan)
    loss = choose_loss(outputs, dataset, plan, logits=returns_logits(model))
    model.compile(loss=loss)
    return [f"the model is not compiled: using {loss.name}"]
