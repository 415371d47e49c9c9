"""Follows a run in a thread, so that no screen waits for a disk."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run import RunInfo, RunReader
from accel_engine.run.run_paths import trained_model
from accel_engine.strategies import CATALOGUE
from accel_engine.text import printable_fields
from accel_tui.run.curve import CAPACITY, Curve
from accel_tui.run.device_curves import DeviceCurvesReader
from accel_tui.run.fold_events import curves_of, fold
from accel_tui.run.state import RunState
from accel_tui.run.step_window import VisibleSteps
from accel_tui.run.worker_follower import WorkerFollower

POLL_SECONDS = 0.1
"""Seconds between two polls; polling an idle run takes some microseconds."""

STATUS_SECONDS = 1.0
"""Seconds between two checks whether the run's engine is alive."""

SAMPLES = 2000
"""Maximum number of past samples that are read: the last minutes of many devices."""

EVENTS = 4096
"""Maximum number of events per read, which bounds the memory for runs with many epochs."""


class RunFollower:
    """Folds a run into its state and reports new states.

    At most one report is pending: the next comes only after :meth:`latest`.

    Args:
        directory: The run's directory.
        on_news: Called in the following thread when there is a new state.
        on_problem: Called in the following thread with the reason when the run cannot be read.
    """

    def __init__(self, directory: Path, on_news: Callable[[], object], on_problem: Callable[[str], object]) -> None:
        self._directory = directory
        self._on_news = on_news
        self._on_problem = on_problem
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._latest = RunState()
        self._taken = True
        self._part: VisibleSteps | None = None
        self._readings: frozenset[str] = frozenset()
        self._workers = WorkerFollower(directory)

    def run(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Follow the run until :meth:`stop`; blocks.

        Args:
            is_wanted: Whether to go on; called at each poll.
        """
        try:
            reader = RunReader(
                self._directory, max_samples=SAMPLES, max_buckets=CAPACITY, max_events=EVENTS, past_phases=False
            )
        except RunError as error:
            self._on_problem(str(error))
            return
        try:
            self._follow(reader, is_wanted)
        finally:
            reader.close()
            self._workers.close()

    def stop(self) -> None:
        """Make :meth:`run` return soon; callable from any thread."""
        self._stop.set()
        self._wake.set()

    def load_details(self, part: VisibleSteps | None) -> None:
        """Set the steps that ``details`` of the state cover; callable from any thread."""
        self._part = part
        self._wake.set()

    def load_readings(self, names: frozenset[str]) -> None:
        """Set which of ``device_curves.READINGS`` the state's ``readings`` have; callable from any thread."""
        self._readings = names
        self._wake.set()

    def latest(self) -> RunState:
        """The latest state; callable from any thread."""
        with self._lock:
            self._taken = True
            return self._latest

    def _follow(self, reader: RunReader, is_wanted: Callable[[], bool]) -> None:
        problem = ""
        state = after = RunState()
        looked = -STATUS_SECONDS
        seen: VisibleSteps | None = None
        devices = DeviceCurvesReader(STATUS_SECONDS)
        while is_wanted() and not self._stop.is_set():
            try:
                while update := reader.poll():
                    after = fold(after, update)
                    if not update.more:
                        break
                turned = (after.started, after.ended) != (state.started, state.ended)
                if turned or time.monotonic() - looked >= STATUS_SECONDS:
                    looked = time.monotonic()
                    info = printable_fields(reader.info())
                    if info != state.info:
                        after = replace(after, info=info)
                    model = None if info.status.live else trained_model(self._directory)
                    if model != after.model:
                        after = replace(after, model=model)
                    if _of_many(info) and (workers := self._workers.poll()) is not after.workers:
                        after = replace(after, workers=workers)
                part = self._part
                grown = after.step != state.step
                if part != seen or (part and (not after.details or (grown and part.last > state.step))):
                    after = replace(after, details=_details(reader, part))
                    seen = part
                curves = devices.read(reader, self._readings, after.ended_at, update)
                if curves is not None:
                    after = replace(after, readings=curves)
                problem = ""
                if after is not state:
                    state = after
                    self._put(state)
            except RunError as error:
                # The disk may be back at the next poll, so this is reported once and tried again.
                if str(error) != problem:
                    problem = str(error)
                    self._on_problem(problem)
            self._wake.wait(POLL_SECONDS)
            self._wake.clear()

    def _put(self, state: RunState) -> None:
        with self._lock:
            self._latest = state
            wake, self._taken = self._taken, False
        if wake:
            self._on_news()


def _of_many(info: RunInfo) -> bool:
    strategy = CATALOGUE.get(str(info.values.get("strategy")))
    return strategy is not None and strategy.processes


def _details(reader: RunReader, part: VisibleSteps | None) -> dict[str, Curve]:
    return curves_of(reader.step_range(part.first, part.last, part.width, part.series)) if part else {}
