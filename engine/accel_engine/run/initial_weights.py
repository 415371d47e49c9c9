"""Finds the run and the step whose weights another run starts from."""

from contextlib import closing
from pathlib import Path

from accel_engine.errors import PlanError, UsageError
from accel_engine.events import ModelBuilt
from accel_engine.plan import Plan
from accel_engine.plan.tuning_checks import IMAGENET, WEIGHT_FILES
from accel_engine.run.early_stopping import EarlyStopping
from accel_engine.run.listing import find
from accel_engine.run.reader import RunReader
from accel_engine.run.run_paths import checkpoint_steps, latest_checkpoint, trained_model
from accel_engine.run.series_names import is_better_lower


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


def step_of_weights(directory: Path) -> int:
    """The step of the checkpoint that another run starts from; 0 if there is none.

    It is the newest one, or the best one of a run that restores its best weights, if it is known which one that is.

    Raises:
        RunError: The run cannot be read.
    """
    steps = checkpoint_steps(directory)
    with closing(RunReader(directory, steps=False, past_phases=False)) as reader:
        values, events = reader.info().plan_values, reader.poll().events
    monitors = [event.monitor for event in events if isinstance(event, ModelBuilt)]
    if not steps or not monitors or values.get("restore_best") != "on":
        return max(steps, default=0)
    lower = is_better_lower(monitors[-1], values.get("monitor_mode"))
    if lower is None:
        return steps[-1]
    metric = EarlyStopping(monitors[-1], lower=lower, min_delta=values.get("min_delta", 0.0))
    metric.replay(events, steps[-1])
    return metric.best_among(steps) or steps[-1]
