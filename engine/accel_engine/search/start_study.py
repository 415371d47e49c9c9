"""Starts searches in the background, for the dashboard."""

from collections.abc import Collection
from pathlib import Path

from accel_engine.devices import detect
from accel_engine.plan import Plan
from accel_engine.process.detached import leave
from accel_engine.search import launch
from accel_engine.search.new_study import SearchOptions, begin, define
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
        AccelError: See :func:`accel_engine.search.new_study.define`, :func:`accel_engine.search.new_study.begin` and
            :func:`accel_engine.search.launch.start`.
    """
    directory = begin(define(plan, given, options), detect().devices)
    resume_study(directory)
    return directory


def resume_study(directory: Path) -> None:
    """Start the process that runs a search, unless one does. Blocks.

    Raises:
        AccelError: See :func:`accel_engine.search.launch.start`.
    """
    if launch.is_running(directory):
        return
    launch.require_optuna()  # before anything is written
    with StudyDatabase(directory) as database:
        database.set_ended(None)
    leave(launch.start(directory))
