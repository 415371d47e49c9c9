"""Chooses the checkpoint with a run's weights: for predictions, evaluations, and runs that start from them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.plan.monitor import is_better_lower
from accel_engine.run.directory import checkpoint_files
from accel_engine.run.directory.run_paths import CHECKPOINTS, checkpoint_steps
from accel_engine.run.engine.status import read_info
from accel_engine.run.history.early_stopping import EarlyStopping
from accel_engine.run.history.history import stored_history
from accel_engine.run.store.database import reading

CHOICES = ("auto", "best", "last")
"""What can be chosen besides a step: ``auto`` is ``best`` for a run that restores its best weights, else ``last``."""


def chosen_step(directory: Path, warn: Callable[[str], None] = lambda _: None, choice: str = "auto") -> int:
    """The step of the checkpoint with a run's weights; 0 if there is none.

    Args:
        directory: The run's directory.
        warn: Takes a message about each checkpoint that is passed over because it is damaged.
        choice: One of :data:`CHOICES`, or the number of a step.

    Raises:
        RunError: The run cannot be read, it has no such checkpoint, it is not known which one is the best, or none of
            its checkpoints is whole.
    """
    folder = directory / CHECKPOINTS
    if choice not in CHOICES:
        return _given_step(directory, choice)

    def find_problem(step: int) -> str:
        problem = checkpoint_files.find_damage(folder, step)
        return checkpoint_files.damaged_message(step, problem) if problem else ""

    steps = checkpoint_files.by_preference(checkpoint_steps(directory), _preference(directory, choice))
    step, problems = checkpoint_files.first_whole(steps, find_problem)
    if step is None and problems:
        raise RunError(checkpoint_files.all_damaged_message(folder, problems))
    for problem in problems:
        warn(f"{problem}: step {step:,} is used")
    return step or 0


def _given_step(directory: Path, choice: str) -> int:
    """The step of a checkpoint that a user chose.

    Raises:
        RunError: The run has no checkpoint of this step, or it is damaged.
    """
    steps = checkpoint_steps(directory)
    step = int(choice)
    if step not in steps:
        raise RunError(f"run {directory.name} has no checkpoint of step {step:,}, only of {_listed(steps)}")
    if problem := checkpoint_files.find_damage(directory / CHECKPOINTS, step):
        raise RunError(checkpoint_files.damaged_message(step, problem))
    return step


def _listed(steps: Sequence[int]) -> str:
    return ", ".join(f"{step:,}" for step in sorted(steps)) or "no step"


def _preference(directory: Path, choice: str) -> Callable[[Sequence[int]], int]:
    """A function that chooses one of some checkpoints' steps.

    Raises:
        RunError: The best one is chosen, and it is not known which one that is.
    """
    with reading(directory) as database:
        values, history = read_info(database).plan_values, stored_history(database)
    if choice == "last" or (choice == "auto" and values.get("restore_best") != "on"):
        return max
    monitor = history.built.monitor if history.built else ""
    lower = is_better_lower(monitor, values.get("monitor_mode")) if monitor else None
    if lower is None:
        if choice == "best":
            raise RunError(f"run {directory.name} does not tell whether a lower or a higher metric is better")
        return max
    metric = EarlyStopping(monitor, lower=lower, min_delta=values.get("min_delta", 0.0))
    metric.restore(history, until=max(checkpoint_steps(directory), default=0))
    return lambda steps: metric.best_among(steps) or max(steps)
