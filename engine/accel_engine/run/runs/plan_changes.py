"""Checks which plan fields may change when a run continues from a checkpoint."""

import math
from collections.abc import Mapping
from typing import Any

from accel_engine.errors import FieldValue, PlanError
from accel_engine.plan import DEFAULTS, USES, Plan
from accel_engine.run.engine.status import RunInfo, Status

CHANGEABLE = frozenset(name for name, use in USES.items() if use.changed_by != "nothing")
"""Fields that a checkpoint does not depend on."""


def check_changes(before: Mapping[str, Any], plan: Plan) -> None:
    """Reject a plan with which a run cannot continue.

    Args:
        before: The fields of the plan that the run was trained with.
        plan: The plan to continue with.

    Raises:
        PlanError: A field that must not change has changed.
    """
    defaults = Plan().to_mapping()
    for name, value in plan.to_mapping().items():
        trained = before.get(name, defaults[name])
        if name not in CHANGEABLE and value != trained:
            words: list[str | FieldValue] = [f"the run's checkpoint was trained with {trained!r}; start a new run"]
            for field in (field for field in DEFAULTS if field in CHANGEABLE):
                words += [", or change only " if len(words) == 1 else ", ", FieldValue(field)]
            raise PlanError(name, value, *words)


def check_epochs(info: RunInfo, plan: Plan, trained: float) -> None:
    """Reject a plan whose epochs are already trained.

    Args:
        info: The ended run.
        plan: The plan to continue with.
        trained: Epochs trained at the last checkpoint, as a fraction.

    Raises:
        PlanError: The run has trained as many epochs, or more. A run that stopped early may continue to its last epoch.
    """
    stopped_early = trained < info.plan_values["epochs"]
    if info.status is Status.FINISHED and not stopped_early and plan.epochs <= info.plan_values["epochs"]:
        raise PlanError("epochs", plan.epochs, "already trained; increase ", FieldValue("epochs"), " to continue")
    if trained > plan.epochs:
        reached = math.ceil(trained)
        reason = f"already trained: the checkpoint is of epoch {reached}; increase "
        raise PlanError("epochs", plan.epochs, reason, FieldValue("epochs"))
