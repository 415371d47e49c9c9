"""Writes what is known of a run before its first step: devices, model, data and notes."""

from dataclasses import dataclass

from accel_engine.data.fingerprint import fingerprint
from accel_engine.devices.device_types import Inventory
from accel_engine.events import DevicesFound, ModelBuilt, TensorFlowDevice, Warned
from accel_engine.plan.estimate import estimate_disk
from accel_engine.run.diagnostics import DataFingerprint, read
from accel_engine.run.directory.disk_space import shortage
from accel_engine.training.core import device_visibility
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.evaluation.input_specs import input_spec_of
from accel_engine.training.reporting.data_formats import data_format_of
from accel_engine.training.reporting.model_summary import learning_rate_of, summarize
from accel_engine.training.reporting.run_reporter import RunReporter


@dataclass(frozen=True, slots=True)
class AssemblyReport:
    """What was written.

    Attributes:
        built: The size of model and data.
        devices: TensorFlow's devices.
        hardware: Their product names.
    """

    built: ModelBuilt
    devices: tuple[TensorFlowDevice, ...]
    hardware: tuple[str, ...]


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
    built = summarize(assembly, can_validate=can_validate)
    reporter.run.write_event(built)
    if (input_spec := input_spec_of(assembly.dataset, assembly.scale)) is not None:
        reporter.run.write_diagnostics(input_spec, reporter.step)
    if not reporter.step or read(reporter.run.directory).data is None:  # the data that the run was started with
        reporter.run.write_diagnostics(DataFingerprint(fingerprint(assembly.dataset)), reporter.step)
    if (form := data_format_of(assembly.dataset, assembly.plan, assembly.task.name)) is not None:
        reporter.run.write_diagnostics(form, reporter.step)
    if (rate := learning_rate_of(assembly, reporter.step)) is not None:
        reporter.run.write_event(rate)
    for note in (*assembly.information, *assembly.freezing.notes):  # those that have not been unfrozen
        reporter.emit(Warned, message=note, severity="information")
    counts = assembly.step_counts
    left = max(0, counts.total_steps - reporter.step)
    needed = estimate_disk(assembly.plan, left, built.parameters or 0, built.trainable or 0)
    for note in filter(None, (*assembly.notes, shortage(reporter.run.directory, needed))):
        reporter.emit(Warned, message=note)
    return AssemblyReport(built, devices, hardware)
