"""Writes the facts of a run before its first step: devices, model, data and notes."""

from dataclasses import dataclass

import keras

from accel_engine import clock
from accel_engine.data.dataset import Examples, Split
from accel_engine.data.fingerprint import fingerprint
from accel_engine.data.structure import ArraySpec, describe
from accel_engine.devices.device_types import Inventory
from accel_engine.events import DevicesFound, LearningRateChanged, ModelBuilt, TensorFlowDevice, Warned
from accel_engine.keras_support.losses import loss_name, output_activation, takes_logits
from accel_engine.keras_support.model_structure import parameter_count
from accel_engine.keras_support.optimizers import optimizer_name, schedule_name
from accel_engine.plan.disk_estimate import estimate_disk
from accel_engine.run.diagnostics import DataFingerprint, read
from accel_engine.run.directory.disk_space import shortage
from accel_engine.run.store.series_names import GRADIENT_NORM, LEARNING_RATE, choose_monitor
from accel_engine.training.core import device_visibility
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.gradient_norms import GradientNorms
from accel_engine.training.core.metric_states import MAX_STATE, MetricStates
from accel_engine.training.evaluation.task_report import input_spec_of
from accel_engine.training.reporting.data_formats import data_format_of
from accel_engine.training.reporting.run_reporter import RunReporter


@dataclass(frozen=True, slots=True)
class AssemblyReport:
    """The parts of a written report that the caller uses."""

    built: ModelBuilt
    """The size of model and data."""
    devices: tuple[TensorFlowDevice, ...]
    """TensorFlow's devices."""
    hardware: tuple[str, ...]
    """Their product names."""


def report_assembly(
    assembly: Assembly, inventory: Inventory, reporter: RunReporter, *, can_validate: bool
) -> AssemblyReport:
    """Write the events and diagnostics of an assembly.

    Args:
        assembly: Model, data and strategy.
        inventory: The machine's devices.
        reporter: Writes the events.
        can_validate: Whether the model can be validated.
    """
    if assembly.coordinated:
        devices = device_visibility.describe_worker_devices()
        hardware = device_visibility.worker_hardware_names(assembly.resolved, inventory)
    else:
        devices = device_visibility.describe_devices(assembly.devices, inventory)
        hardware = device_visibility.hardware_names(devices, inventory)
    strategy = type(assembly.strategy).__name__
    reporter.emit(DevicesFound, devices=devices, strategy=strategy, address=assembly.resolved.remote_tpu)
    built = _summarize_model(assembly, can_validate=can_validate)
    reporter.run.write_event(built)
    if (input_spec := input_spec_of(assembly.dataset, assembly.scale)) is not None:
        reporter.run.write_diagnostics(input_spec, reporter.step)
    if not reporter.step or read(reporter.run.directory).data is None:  # the data that the run was started with
        reporter.run.write_diagnostics(DataFingerprint(fingerprint(assembly.dataset)), reporter.step)
    if (form := data_format_of(assembly.dataset, assembly.plan, assembly.task.name)) is not None:
        reporter.run.write_diagnostics(form, reporter.step)
    if (rate := _learning_rate_of(assembly, reporter.step)) is not None:
        reporter.run.write_event(rate)
    for note in (*assembly.information, *assembly.freezing.notes):  # those that have not been unfrozen
        reporter.emit(Warned, message=note, severity="information")
    counts = assembly.step_counts
    left = max(0, counts.total_steps - reporter.step)
    needed = estimate_disk(assembly.plan, left, built.parameters or 0, built.trainable or 0)
    for note in filter(None, (*assembly.notes, shortage(reporter.run.directory, needed))):
        reporter.emit(Warned, message=note)
    return AssemblyReport(built, devices, hardware)


def _summarize_model(assembly: Assembly, *, can_validate: bool) -> ModelBuilt:
    """The event with the size of the model, of the data and of an epoch.

    Args:
        assembly: Model, data and strategy.
        can_validate: Whether the model can be validated.
    """
    plan, model, dataset, step_counts = assembly.plan, assembly.model, assembly.dataset, assembly.step_counts
    series = _series(assembly)
    validation = dataset.validation if can_validate else None
    validated = _validated(series) if validation is not None and plan.validation != "off" else ()
    return ModelBuilt(
        time=clock.now(),
        parameters=model.count_params(),
        trainable=parameter_count(model.trainable_weights),
        layers=len(model.layers),
        input_shape=dataset.shape,
        classes=dataset.classes,
        examples=_count(dataset.train),
        validation_examples=_count(validation) if validation is not None else 0,
        epochs=plan.epochs,
        steps_per_epoch=step_counts.steps_per_epoch,
        global_batch=step_counts.global_batch,
        per_replica_batch=step_counts.per_replica_batch,
        dropped_examples=step_counts.dropped_examples,
        replicas=step_counts.replicas,
        optimizer=optimizer_name(model.optimizer) if model.optimizer is not None else "",
        loss=loss_name(model.loss),
        series=series,
        precision=plan.policy,
        xla=plan.xla == "on" or assembly.on_tpu,
        feed=assembly.feed.kind,
        scaling=assembly.scaling.text if dataset.kind in ("images", "arrays") else "",
        task=assembly.task.name,
        monitor=choose_monitor(plan.monitor, series, validated, assembly.task.name),
        inputs=describe(dataset.spec.inputs),
        outputs=_outputs_text(assembly),
        activation=output_activation(model),
        from_logits=None if assembly.has_custom_train_step else takes_logits(model.loss),
    )


def _learning_rate_of(assembly: Assembly, step: int) -> LearningRateChanged | None:
    """The event with the learning rate that a step starts with; ``None`` where it is unknown."""
    optimizer, rate = assembly.optimizer, assembly.learning_rate
    if optimizer is None or rate is None:
        return None
    return LearningRateChanged(time=clock.now(), step=step, learning_rate=rate, schedule=schedule_name(optimizer))


def measured_metrics(assembly: Assembly, limit: int | None = None) -> tuple[str, ...]:
    """Names of the metrics of validations; empty for a custom ``train_step``.

    Args:
        assembly: Has the model.
        limit: Metrics with larger states are left out, as :data:`MAX_EPOCH_STATE` for metrics of epochs.
    """
    if assembly.has_custom_train_step:
        return ()
    return ("loss", *MetricStates(assembly.model, assembly.metrics, assembly.names, limit).series)


def _count(examples: Examples) -> int | None:
    """Number of examples; ``None`` for a stream."""
    return len(examples) if isinstance(examples, Split) else None


def _validated(series: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the metrics of validation that are known before the first one."""
    return tuple(name for name in series if name != LEARNING_RATE and not name.startswith(GRADIENT_NORM))


def _outputs_text(assembly: Assembly) -> str:
    """The model's outputs for one example."""
    if assembly.outputs is None:
        return ""
    specs = keras.tree.map_structure(lambda each: ArraySpec(tuple(each.shape[1:]), str(each.dtype)), assembly.outputs)
    return describe(specs)


def _series(assembly: Assembly) -> tuple[str, ...]:
    """Names of the series recorded at every step; a custom ``train_step`` and the model's metrics may add more."""
    norm = GradientNorms(assembly.plan, assembly.model).names
    rate = () if assembly.optimizer is None else (LEARNING_RATE,)
    own = (
        ()
        if assembly.has_custom_train_step
        else MetricStates(assembly.model, assembly.metrics, assembly.names, MAX_STATE).series
    )
    return ("loss", *own, *norm, *rate)
