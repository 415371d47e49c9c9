"""Follows a study in a separate thread."""

import threading
from collections.abc import Callable
from pathlib import Path

from accel_engine.errors import AccelError
from accel_engine.run.lock import is_held
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import LOCK
from accel_engine.text import printable_line
from accel_tui.study_state.fold_study import StudyUpdate, apply_update
from accel_tui.study_state.state import StudyState

POLL_SECONDS = 0.5
"""Seconds between two polls: a trial reports once an epoch."""


class StudyFollower:
    """Folds a study into its state and reports new states; at most one report is pending.

    Args:
        directory: The study's directory.
        on_news: Called in the following thread when there is a new state; the next time only after :meth:`latest`.
        on_problem: Called in the following thread with the reason when the study cannot be read.
    """

    def __init__(self, directory: Path, on_news: Callable[[], object], on_problem: Callable[[str], object]) -> None:
        self._directory = directory
        self._on_news = on_news
        self._on_problem = on_problem
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._latest = StudyState(printable_line(directory.name))
        self._taken = True

    def run(self) -> None:
        """Follow the study until :meth:`stop`; blocks."""
        problem = ""
        while not self._stop.is_set():
            try:
                with StudyDatabase(self._directory) as database:
                    problem = ""
                    self._follow(database)
            except AccelError as error:  # the disk may be back at the next poll: reported once, and tried again
                if str(error) != problem:
                    problem = str(error)
                    self._on_problem(problem)
                self._wait()

    def stop(self) -> None:
        """Make :meth:`run` return soon; callable from any thread."""
        self._stop.set()
        self._wake.set()

    def look(self) -> None:
        """Poll now; callable from any thread."""
        self._wake.set()

    def latest(self) -> StudyState:
        """The latest state; callable from any thread."""
        with self._lock:
            self._taken = True
            return self._latest

    def _follow(self, database: StudyDatabase) -> None:
        while not self._stop.is_set():
            before = self._latest
            after = apply_update(before, read_update(database, before))
            if after is not before:
                self._put(after)
            self._wait()

    def _wait(self) -> None:
        self._wake.wait(POLL_SECONDS)
        self._wake.clear()

    def _put(self, state: StudyState) -> None:
        with self._lock:
            self._latest = state
            is_wanted, self._taken = self._taken, False
        if is_wanted:
            self._on_news()


def read_update(database: StudyDatabase, state: StudyState) -> StudyUpdate:
    """Read what a state does not have yet.

    Raises:
        RunError: The study cannot be read.
    """
    changes = database.changes()  # before the trials: one that changes meanwhile is read again
    trials = database.trials(state.changes) if changes != state.changes else []
    last_report, reports = database.reports(state.last_report)
    return StudyUpdate(
        definition=database.definition,
        created=database.created,
        trials=trials,
        reports=reports,
        ended=database.ended,
        confirmation=database.confirmation,
        is_running=is_held(database.directory, LOCK),
        changes=changes,
        last_report=last_report,
    )
