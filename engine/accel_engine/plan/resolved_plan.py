"""A plan with everything that it refers to, looked up once: strategy, model, data, cluster, devices and steps.

The form, the command line and the engine share it. The engine completes it once TensorFlow's devices are configured
and the data is loaded. Without TensorFlow.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Self

from accel_engine import data as datasets
from accel_engine import models, strategies
from accel_engine.data import DatasetEntry
from accel_engine.data.pixel_scaling import choose_scaling
from accel_engine.data.structure import ArraySpec
from accel_engine.devices.device_types import Device
from accel_engine.errors import PlanError, UsageError, Words
from accel_engine.models import ModelEntry, UserModel, user_code
from accel_engine.plan import Plan
from accel_engine.plan.estimate import StepCounts, count_steps
from accel_engine.plan.placement import Placement, find_cluster, find_tpu, place
from accel_engine.plan.plan_errors import InvalidPlanError
from accel_engine.strategies import StrategyEntry
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.strategies.tpu_endpoint import TpuEndpoint


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """A plan and what it refers to.

    Attributes:
        plan: The plan.
        strategy: Its strategy.
        model: Its model.
        data: What is known of its dataset.
        cluster: The cluster that this process belongs to; ``None`` for a single process.
        tpu: The endpoint of the TPU; ``None`` under other strategies.
        placement: The devices that train; ``None`` while the machine's devices are unknown, or if they do not fit.
        step_counts: Batch sizes and steps; ``None`` while the number of examples or replicas is unknown, or if they do
            not fit.
        errors: Why the plan cannot be trained, by field.
        environment_error: Why the environment describes no valid cluster or TPU; also an error of the strategy.
    """

    plan: Plan
    strategy: StrategyEntry
    model: ModelEntry | UserModel
    data: DatasetEntry
    cluster: ClusterSpec | None = None
    tpu: TpuEndpoint | None = None
    placement: Placement | None = None
    step_counts: StepCounts | None = None
    errors: Mapping[str, Words] = field(default_factory=dict)
    environment_error: str = ""

    @property
    def coordinated(self) -> bool:
        """Whether a coordinator schedules the steps of the cluster's workers."""
        return self.cluster is not None and self.cluster.coordinated

    @property
    def remote_tpu(self) -> str:
        """The address or name of a TPU that is not in this machine; empty otherwise."""
        return self.tpu.target if self.tpu and not self.tpu.local else ""

    def with_devices(self, devices: Sequence[Device]) -> Self:
        """Place the plan on devices.

        Raises:
            PlanError: They do not fit.
        """
        return replace(self, placement=place(self.plan, self.strategy, devices, self.cluster, self.tpu))

    def with_data(self, data: DatasetEntry) -> Self:
        """Complete the plan with what is known of its dataset, such as a survey of the user's files."""
        errors, step_counts = dict(self.errors), None
        with _collected(errors):
            if data.value_range is not None:
                choose_scaling(self.plan.scale, data.value_range)
        task = data.task if self.plan.task == "auto" else self.plan.task
        model, replicas = self.model, self.placement.replicas if self.placement else None
        if (
            isinstance(model, ModelEntry)
            and (data.shape is not None or (data.spec is not None and not isinstance(data.spec.inputs, ArraySpec)))
            and (mismatch := model.mismatch(data.shape, task, data.classes, dtype=data.dtype))
        ):
            errors["model"] = (mismatch,)
        with _collected(errors):
            if replicas is not None and data.examples is not None:
                step_counts = count_steps(self.plan, data.examples, replicas)
        return replace(self, data=data, step_counts=step_counts, errors=errors)

    def with_step_counts(self, step_counts: StepCounts) -> Self:
        """Complete the plan with its steps, once the data is read and the replicas are known."""
        return replace(self, step_counts=step_counts)

    def check(self) -> Self:
        """Return this plan if it has no errors.

        Raises:
            PlanError: It has one error.
            InvalidPlanError: It has several errors.
            UsageError: The environment describes no valid cluster or TPU.
        """
        if self.environment_error:
            raise UsageError(self.environment_error)
        errors = [PlanError(name, getattr(self.plan, name), *reason) for name, reason in self.errors.items()]
        if len(errors) > 1:
            raise InvalidPlanError([str(error) for error in errors])
        for error in errors:
            raise error
        return self


def resolve(
    plan: Plan, devices: Sequence[Device] | None = None, *, environment: Mapping[str, str] = os.environ
) -> ResolvedPlan:
    """Look up what a plan refers to, and collect its errors; the user's data is not read.

    Args:
        plan: The plan.
        devices: The machine's devices; without them the plan is not placed.
        environment: Environment variables, which may describe a cluster or name a TPU.
    """
    strategy = strategies.find(plan.strategy)
    errors: dict[str, Words] = {}
    cluster, tpu, placement, environment_error = None, None, None, ""
    try:
        with _collected(errors):
            cluster, tpu = find_cluster(strategy, environment), find_tpu(plan, strategy, environment)
            if devices is not None:
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
        placement=placement,
        errors=errors,
        environment_error=environment_error,
    ).with_data(data)


def check(plan: Plan, devices: Sequence[Device]) -> ResolvedPlan:
    """Resolve a plan before it is trained; reads names and headers of the user's data, and the source of functions.

    Only the engine runs the user's functions.

    Args:
        plan: The plan.
        devices: The machine's devices.

    Raises:
        PlanError: A field does not fit the machine, the data or the model.
        DataError: The data file or folder cannot be read.
        ModelError: The function of the user's model does not exist, or requires unknown arguments.
        UsageError: The environment describes no valid cluster or TPU.
    """
    resolved = resolve(plan, devices).check()
    if isinstance(resolved.model, UserModel):
        user_code.check(resolved.model)
    surveyed = datasets.survey(resolved.data, plan.data_options)
    return resolved.with_data(surveyed).check()


@contextmanager
def _collected(errors: dict[str, Words]) -> Iterator[None]:
    """Collect the error of a block by its field."""
    try:
        yield
    except PlanError as error:
        errors.setdefault(error.field, error.reason)
