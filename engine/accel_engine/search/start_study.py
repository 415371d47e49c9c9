"""Starts searches in the background, for the dashboard."""

from collections.abc import Collection
from pathlib import Path

from accel_engine.devices import detect
from accel_engine.plan import Plan
from accel_engine.process.detached import leave
from accel_engine.search import launch
from accel_engine.search.definition import SearchOptions
from accel_engine.search.new_study import begin_study, define
from accel_engine.search.study_database import StudyDatabase


def start_study(plan: Plan, given: Collection[str], options: SearchOptions) -> Path:
    """Begin a search, and start the process that runs it. Blocks.

    Args:
        plan: The plan; its monitor is the search's.
        given: Fields that a user has chosen, also where they have their default.
        options: All else.

    Returns:
        The search's directory.

    Raises:
        AccelError: The search cannot be defined, begun or started.
    """
    directory = begin_study(define(plan, given, options), detect().devices)
    resume_study(directory)
    return directory


def resume_study(directory: Path) -> None:
    """Start the process that runs a search, unless one does. Blocks.

    Raises:
        AccelError: See :func:`accel_engine.search.launch.start_search_process`.
    """
    if launch.is_search_running(directory):
        return
    launch.require_optuna()  # before anything is written
    with StudyDatabase(directory) as database:
        database.update(ended=None)
    leave(launch.start_search_process(directory))
