"""Chooses the checkpoint with a run's weights: for predictions, validating again, and runs that start from them."""

from contextlib import closing
from pathlib import Path

from accel_engine.events import ModelBuilt
from accel_engine.run.early_stopping import EarlyStopping
from accel_engine.run.reader import RunReader
from accel_engine.run.run_paths import checkpoint_steps
from accel_engine.run.series_names import is_better_lower


def chosen_step(directory: Path) -> int:
    """The step of the checkpoint with a run's weights; 0 if there is none.

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
