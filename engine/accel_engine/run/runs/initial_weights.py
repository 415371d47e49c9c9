"""Finds the run whose weights another run starts from."""

from accel_engine.errors import PlanError, UsageError
from accel_engine.plan import Plan
from accel_engine.plan.tuning_checks import IMAGENET, WEIGHT_FILES
from accel_engine.run.directory.run_paths import latest_checkpoint, trained_model
from accel_engine.run.runs.listing import find


def with_found_weights(plan: Plan) -> Plan:
    """A plan whose ``initial_weights`` are those of a run's directory, if they name a run.

    Raises:
        PlanError: There is no such run, or it has no weights.
    """
    source = plan.initial_weights
    if not source or source == IMAGENET or source.endswith(WEIGHT_FILES):
        return plan
    try:
        directory = find(source)
    except UsageError as error:
        reason = f"must be {IMAGENET}, a run, FILE.keras or FILE.weights.h5: {error}"
        raise PlanError("initial_weights", source, reason) from error
    if not latest_checkpoint(directory) and trained_model(directory) is None:
        reason = f"run {directory.name} has no weights yet: it has written neither a checkpoint nor model.keras"
        raise PlanError("initial_weights", source, reason)
    return plan.replace(initial_weights=str(directory.absolute()))
