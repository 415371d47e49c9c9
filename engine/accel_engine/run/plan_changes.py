"""What of a plan may change when its run goes on from a checkpoint."""

import math
from collections.abc import Mapping
from typing import Any

from accel_engine.errors import PlanError
from accel_engine.plan import DEFAULTS, Plan, flag
from accel_engine.run.status import RunInfo, Status

CHANGEABLE = frozenset(
    {
        "epochs",
        "learning_rate",
        "validation",
        "gradient_norm",
        "tensorboard",
        "force",
        "xla",
        "micro_batches",
        "name",
        "strategy",
        "devices",
        "virtual_cpus",
        "reduction",
        "local_workers",
        "tpu",
        "memory_growth",
        "memory_limit",
    }
)
"""Fields that a checkpoint does not depend on.

The others decide what its numbers mean (model, optimizer, precision) or which examples the steps
before it have seen (data, batch size, steps of an epoch, seed).
"""


def check_changes(before: Mapping[str, Any], plan: Plan) -> None:
    """Refuse a plan with which a run cannot go on.

    Args:
        before: The fields of the plan that the run was trained with.
        plan: The plan that it is to go on with.

    Raises:
        PlanError: A field that may not change has changed.
    """
    for name, value in plan.to_mapping().items():
        trained = before.get(name, DEFAULTS[name])
        if name not in CHANGEABLE and value != trained:
            changeable = ", ".join(flag(field) for field in DEFAULTS if field in CHANGEABLE)
            raise PlanError(
                name,
                value,
                f"the run was trained with {trained!r} and has a checkpoint of that; "
                f"start a new run, or change only {changeable}",
            )


def check_epochs(info: RunInfo, plan: Plan, trained: float) -> None:
    """Refuse a plan that leaves a run nothing to train.

    Args:
        info: The run as it ended.
        plan: The plan that it is to go on with.
        trained: The epochs by its last checkpoint, of the one that it was in a part.

    Raises:
        PlanError: It has trained as many epochs, or more.
    """
    if info.status is Status.FINISHED and plan.epochs <= info.values["epochs"]:
        raise PlanError("epochs", plan.epochs, "already trained; increase --epochs to continue")
    if trained > plan.epochs:
        reached = math.ceil(trained)
        raise PlanError(
            "epochs", plan.epochs, f"already trained: the checkpoint is of epoch {reached}; increase --epochs"
        )
