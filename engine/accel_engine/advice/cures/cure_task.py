"""Which plans a trial of a cure compares, from which step, and by what."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accel_engine.advice.cures.cure_kinds import Quantity, check_trial, quantity_of, trains_on_cpu
from accel_engine.devices import detect
from accel_engine.errors import RunError
from accel_engine.events import DevicesFound, Event, ModelBuilt
from accel_engine.plan import Plan, resolved_plan
from accel_engine.plan.changed_plan import changed_plan
from accel_engine.plan.scaled_rate import with_planned_rate
from accel_engine.requests.try_plan import TrialStart
from accel_engine.run import RunInfo, Status
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.run.history.settled_plan import settled_plan
from accel_engine.run.runs.plan_changes import CHANGEABLE

BALANCED = "f1_score"
"""The metric by which weights of classes are judged: accuracy falls by design where rare classes count more."""


@dataclass(frozen=True, slots=True)
class CureTask:
    """The two plans that are tried, and what of them is compared.

    Attributes:
        before: Without the changes.
        after: With them.
        quantity: What is compared.
        changes: The changes.
        balanced_metric: A metric to compare that counts each class the same; empty if classes matter by their number.
    """

    before: TrialStart
    after: TrialStart
    quantity: Quantity
    changes: Mapping[str, Any]
    balanced_metric: str = ""

    @property
    def start(self) -> str:
        """Where both begin, in words."""
        return f"from the checkpoint of step {self.before.step:,}" if self.before.step else "from the initial weights"


def cure_task(
    info: RunInfo, events: list[Event], changes: Mapping[str, Any], quantity: Quantity | None = None
) -> CureTask:
    """The plans of a trial.

    Args:
        info: The run.
        events: Its events, without those of discarded steps.
        changes: Fields of the plan, with their new values; a learning rate is the one that the optimizer gets.
        quantity: What is compared; by default it follows from the changed fields.

    Raises:
        AccelError: The changes cannot be tried, and why.
    """
    plan = check_trial(info, changes)
    found = [event for event in events if isinstance(event, DevicesFound)]
    own = quantity_of(changes, on_cpu=trains_on_cpu(found))
    quantity = own if quantity is None or own is Quantity.INTERVALS else quantity
    built = [event for event in events if isinstance(event, ModelBuilt)]
    balanced = BALANCED if "class_weight" in changes and built and built[-1].task == "classification" else ""
    before = _measuring(settled_plan(plan, events), balanced)
    after = _with(before, with_planned_rate(changes, before, built[-1].replicas if built else 1))
    if after.to_mapping() == before.to_mapping():
        raise RunError("the run has these settings already")
    step = _first_step(info, changes, quantity)
    run = info.directory if step else None
    return CureTask(TrialStart(before, step, run), TrialStart(after, step, run), quantity, changes, balanced)


def _measuring(plan: Plan, metric: str) -> Plan:
    return plan.replace(metrics=(*plan.metrics, metric)) if metric and metric not in plan.metrics else plan


def _with(plan: Plan, changes: Mapping[str, Any]) -> Plan:
    """A plan with changes, checked on this machine; ``xla`` ``auto`` is what autotuning would try, ``on``."""
    tried = {**changes, **({"xla": "on"} if changes.get("xla") == "auto" else {})}
    return resolved_plan.check(changed_plan(plan, tried), detect().devices, chosen=tried).plan


def _first_step(info: RunInfo, changes: Mapping[str, Any], quantity: Quantity) -> int:
    """The step of the checkpoint to start from, as the run would go on; 0 where it would start anew."""
    if not CHANGEABLE.issuperset(changes):
        return 0
    if quantity is Quantity.LEARNING and info.status is Status.FINISHED:
        return 0
    return latest_checkpoint(info.directory)
