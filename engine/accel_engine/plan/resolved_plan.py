"""A plan with everything that it refers to, looked up once: strategy, model, data, cluster, devices and steps.

The form, the command line and the engine share it. The engine completes it once TensorFlow's devices are configured
and the data is loaded. Without TensorFlow.
"""

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Self

from accel_engine import data as datasets
from accel_engine import models, strategies
from accel_engine.data import DatasetEntry
from accel_engine.data.pixel_scaling import choose_scaling
from accel_engine.devices.device_types import Device
from accel_engine.devices.installation import with_unlisted_gpus
from accel_engine.errors import AccelError, PlanError, UsageError, Words
from accel_engine.models import ARGUMENTS, AutoModel, ModelEntry, UserModel, choose
from accel_engine.models.data_description import DataDescription, describe_entry
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.fit_checks import errors_of_fit
from accel_engine.plan.placement import Placement, check_isolation, find_cluster, find_tpu, place
from accel_engine.plan.plan_file import InvalidPlanError
from accel_engine.plan.purposes import Situation, kind_of_devices
from accel_engine.plan.step_counts import StepCounts, count_steps
from accel_engine.plan.task_choices import IMAGENET
from accel_engine.strategies import StrategyEntry
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.strategies.tpu_endpoint import TpuEndpoint
from accel_engine.user_source import check_source

ALL_FIELDS = frozenset(SPECS)
"""The fields that are chosen for a new run."""


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """A plan and what it refers to."""

    plan: Plan
    strategy: StrategyEntry
    model: ModelEntry | AutoModel | UserModel
    """Its model; for ``auto``, the chosen one once the data tells it."""
    data: DatasetEntry
    """The survey of its dataset."""
    cluster: ClusterSpec | None = None
    """The cluster that this process belongs to; ``None`` for a single process."""
    tpu: TpuEndpoint | None = None
    """The endpoint of the TPU; ``None`` under other strategies."""
    devices: Sequence[Device] | None = None
    """The devices of the machine; ``None`` while they are unknown."""
    placement: Placement | None = None
    """The devices that train; ``None`` while the machine's devices are unknown, or if they do not fit."""
    step_counts: StepCounts | None = None
    """Batch sizes and steps; ``None`` while the number of examples or replicas is unknown, or if they do not fit."""
    errors: Mapping[str, Words] = field(default_factory=dict)
    """Why the plan cannot be trained, by field."""
    environment_error: str = ""
    """Why the environment describes no valid cluster or TPU; also an error of the strategy."""
    chosen: Container[str] = ALL_FIELDS
    """The fields whose values are chosen now: all of a new run, only the changed ones of one that continues. What a run
    was trained with does not keep it from continuing."""
    streams_data: bool = False
    """Whether examples are never cached on the devices, to save memory."""

    @property
    def _pretrained(self) -> bool:
        return self.plan.initial_weights == IMAGENET

    @property
    def coordinated(self) -> bool:
        """Whether a coordinator schedules the steps of the cluster's workers."""
        return self.cluster is not None and self.cluster.coordinated

    @property
    def is_sized_by_data(self) -> bool:
        """Whether the size of the model is only known once the data is read, as with a vocabulary."""
        described, is_entry = describe_entry(self.data, self.plan.task), isinstance(self.model, ModelEntry)
        is_unknown = described is None or described.is_size_unknown
        return self.data.needs_engine or isinstance(self.model, AutoModel) or (is_entry and is_unknown)

    @property
    def remote_tpu(self) -> str:
        """The address or name of a TPU that is not in this machine; empty otherwise."""
        return self.tpu.target if self.tpu and not self.tpu.local else ""

    def with_devices(self, devices: Sequence[Device]) -> Self:
        """Place the plan on devices.

        Raises:
            PlanError: The plan's devices do not exist, or do not fit its strategy.
        """
        placement = place(self.plan, self.strategy, devices, self.cluster, self.tpu)
        return replace(self, devices=devices, placement=placement)

    def situation(self, devices: Sequence[Device] | None = None) -> Situation:
        """The situation of the plan on some devices; ``None`` while they are unknown."""
        # Other processes of a cluster may have other devices.
        kind = "" if self.cluster is not None else kind_of_devices(self.plan, self.strategy, devices)
        gpus = sum(device.kind == "gpu" for device in devices or ())
        return Situation(self.plan, self.strategy, self.model, self.data, kind, gpus)

    def with_data(self, data: DatasetEntry) -> Self:
        """Complete the plan with what is known of its dataset, such as a survey of the user's files."""
        errors, step_counts = dict(self.errors), None
        with _collected(errors):
            if data.value_range is not None:
                choose_scaling(self.plan.scale, data.value_range)
        replicas = self.placement.replicas if self.placement else None
        model, described = models.find(self.plan.model), describe_entry(data, self.plan.task)
        with _collected(errors):
            model = choose.resolve_model(model, described, pretrained=self._pretrained)
        if isinstance(model, ModelEntry) and described and (mismatch := model.mismatch(described)):
            errors["model"] = (mismatch,)
        with _collected(errors):
            if replicas is not None and data.examples is not None:
                step_counts = count_steps(self.plan, data.examples, replicas)
        resolved = replace(self, model=model, data=data, step_counts=step_counts)
        for error in errors_of_fit(resolved.situation(self.devices), step_counts, self.chosen):
            errors.setdefault(error.field, error.reason)
        return replace(resolved, errors=errors)

    def with_chosen_model(self, data: DataDescription | None = None) -> Self:
        """Replace ``auto`` by the model that it stands for, in the plan too, so that a continued run has the same.

        Args:
            data: The data, once it is read; by default what is known before.

        Raises:
            PlanError: There is no default model for the data.
        """
        model = (
            self.model
            if data is None
            else choose.resolve_model(models.find(self.plan.model), data, pretrained=self._pretrained)
        )
        if not isinstance(model, ModelEntry) or not isinstance(models.find(self.plan.model), AutoModel):
            return self
        return replace(self, model=model, plan=self.plan.replace(model=model.name))

    def with_micro_batches(self, count: int) -> Self:
        """Set the number of micro-batches that a pipeline has chosen; 1 if it does not divide the batch."""
        return replace(self, plan=self.plan.replace(micro_batches=count))

    def with_step_counts(self, step_counts: StepCounts) -> Self:
        """Complete the plan with its steps, once the data is read and the replicas are known."""
        return replace(self, step_counts=step_counts)

    def with_survey(self) -> Self:
        """Complete the plan with what the names, headers and first rows of its data tell, and what the system allows.

        Raises:
            DataError: The data file or folder cannot be read.
        """
        errors = dict(self.errors)
        with _collected(errors):
            check_isolation(self.plan, self.strategy, self.cluster)
        resolved = replace(self, errors=errors)
        with _collected(errors):
            return resolved.with_data(datasets.survey(self.data, self.plan.data_options))
        return resolved

    @property
    def plan_errors(self) -> list[PlanError]:
        """The errors, each with the value of its field."""
        return [PlanError(name, getattr(self.plan, name), *reason) for name, reason in self.errors.items()]

    def check(self) -> Self:
        """Return this plan if it has no errors.

        Raises:
            PlanError: The plan has one error.
            InvalidPlanError: The plan has several errors.
            UsageError: The environment describes no valid cluster or TPU.
        """
        if self.environment_error:
            raise UsageError(self.environment_error)
        errors = self.plan_errors
        if len(errors) > 1:
            raise InvalidPlanError(errors)
        for error in errors:
            raise error
        return self


def resolve(
    plan: Plan,
    devices: Sequence[Device] | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    chosen: Container[str] = ALL_FIELDS,
) -> ResolvedPlan:
    """Look up what a plan refers to, and collect its errors; the user's data is not read.

    Args:
        plan: The plan.
        devices: The machine's devices; without them the plan is not placed.
        environment: Environment variables, which may describe a cluster or name a TPU.
        chosen: The fields whose values are chosen now; see :class:`ResolvedPlan`.
    """
    strategy = strategies.find(plan.strategy)
    errors: dict[str, Words] = {}
    cluster, tpu, placement, environment_error = None, None, None, ""
    try:
        with _collected(errors):
            cluster, tpu = find_cluster(strategy, environment), find_tpu(plan, strategy, environment)
            if devices is not None:
                devices = with_unlisted_gpus(devices, plan.devices)
                placement = place(plan, strategy, devices, cluster, tpu)
    except UsageError as error:
        environment_error = str(error)
        errors["strategy"] = (environment_error,)
    data = datasets.find(plan.data)
    return ResolvedPlan(
        plan=plan,
        strategy=strategy,
        model=models.find(plan.model),
        data=data,
        cluster=cluster,
        tpu=tpu,
        devices=devices,
        placement=placement,
        errors=errors,
        environment_error=environment_error,
        chosen=chosen,
    ).with_data(data)


def resolve_to_train(
    plan: Plan,
    devices: Sequence[Device],
    *,
    chosen: Container[str] = ALL_FIELDS,
    environment: Mapping[str, str] = os.environ,
) -> ResolvedPlan:
    """Resolve a plan before it is trained; reads names and headers of the user's data, and the source of functions.

    Only the engine runs the user's functions.

    Args:
        plan: The plan.
        devices: The machine's devices.
        chosen: The fields whose values are chosen now; see :class:`ResolvedPlan`.
        environment: Environment variables, which may describe a cluster or name a TPU.

    Raises:
        PlanError: A field does not fit the machine, the data or the model.
        DataError: The data file or folder cannot be read.
        ModelError: The function of the user's model does not exist, or requires unknown arguments.
        UsageError: The environment describes no valid cluster or TPU.
    """
    resolved = resolve(plan, devices, chosen=chosen, environment=environment)
    try:
        resolved = resolved.with_survey()
    except AccelError:
        resolved.check()  # what is wrong with the plan may be why
        raise
    resolved.check()
    if isinstance(resolved.model, UserModel) and resolved.model.function:
        check_source(resolved.model.user_function, ARGUMENTS)
    return resolved


@contextmanager
def _collected(errors: dict[str, Words]) -> Iterator[None]:
    """Collect the error of a block by its field."""
    try:
        yield
    except PlanError as error:
        errors.setdefault(error.field, error.reason)
