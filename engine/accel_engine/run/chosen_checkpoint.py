"""Chooses the checkpoint with a run's weights: for predictions, validating again, and runs that start from them."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.events import ModelBuilt
from accel_engine.run.checkpoint_files import by_preference, damage, damaged_message, first_whole, none_whole
from accel_engine.run.early_stopping import EarlyStopping
from accel_engine.run.reader import RunReader
from accel_engine.run.run_paths import CHECKPOINTS, checkpoint_steps
from accel_engine.run.series_names import is_better_lower


def chosen_step(directory: Path, warn: Callable[[str], None] = lambda _: None) -> int:
    """The step of the checkpoint with a run's weights; 0 if there is none.

    It is the newest whole one, or the best one of a run that restores its best weights, if it is known which one that
    is.

    Args:
        directory: The run's directory.
        warn: Takes a message about each checkpoint that is passed over because it is damaged.

    Raises:
        RunError: The run cannot be read, or none of its checkpoints is whole.
    """
    folder = directory / CHECKPOINTS

    def find_problem(step: int) -> str:
        problem = damage(folder, step)
        return damaged_message(step, problem) if problem else ""

    steps = by_preference(checkpoint_steps(directory), _preference(directory))
    step, problems = first_whole(steps, find_problem)
    if step is None and problems:
        raise RunError(none_whole(folder, problems))
    for problem in problems:
        warn(f"{problem}: step {step:,} is used")
    return step or 0


def _preference(directory: Path) -> Callable[[Sequence[int]], int]:
    """A function that chooses one of some checkpoints' steps."""
    with closing(RunReader(directory, steps=False, past_phases=False)) as reader:
        values, events = reader.info().plan_values, reader.poll().events
    monitors = [event.monitor for event in events if isinstance(event, ModelBuilt)]
    if not monitors or values.get("restore_best") != "on":
        return max
    lower = is_better_lower(monitors[-1], values.get("monitor_mode"))
    if lower is None:
        return max
    metric = EarlyStopping(monitors[-1], lower=lower, min_delta=values.get("min_delta", 0.0))
    metric.replay(events, max(checkpoint_steps(directory), default=0))
    return lambda steps: metric.best_among(steps) or max(steps)
