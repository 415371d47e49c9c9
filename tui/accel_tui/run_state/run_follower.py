"""Follows a run."""

import time
from dataclasses import replace
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run import RunInfo, RunReader, Status
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.strategies import CATALOGUE
from accel_engine.text import printable_fields
from accel_tui.follower import Follower, NewState, Unreadable
from accel_tui.run_state.curve import CAPACITY, RecordedCurve
from accel_tui.run_state.device_curves import DeviceCurvesReader
from accel_tui.run_state.fold_events import apply_update, curves_of
from accel_tui.run_state.state import RunState
from accel_tui.run_state.step_window import VisibleSteps
from accel_tui.run_state.worker_follower import WorkerFollower

POLL_SECONDS = 0.2
"""Seconds between two polls; polling an idle run takes some microseconds."""

STARTING_SECONDS = 0.02
"""The same until the first step of a live run, which the user is waiting for."""

STATUS_SECONDS = 1.0
"""Seconds between two checks whether the run's engine is alive."""

SAMPLES = 2000
"""Maximum number of past samples that are read: the last minutes of many devices."""

EVENTS = 4096
"""Maximum number of events per read, which bounds the memory for runs with many epochs."""


class RunFollower(Follower[RunState]):
    """Folds a run into its state.

    Args:
        directory: The run's directory.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(RunState())
        self._directory = directory
        self._visible_steps: VisibleSteps | None = None
        self._metric_names: frozenset[str] = frozenset()
        self._workers = WorkerFollower(directory)

    def run(self) -> None:
        """Follow the run; one that cannot be opened is not tried again."""
        try:
            reader = RunReader(
                self._directory, max_samples=SAMPLES, max_buckets=CAPACITY, max_events=EVENTS, past_phases=False
            )
        except RunError as error:
            self.tell(Unreadable(str(error)))
            return
        try:
            self._follow(reader)
        finally:
            reader.close()
            self._workers.close()

    def load_visible_steps(self, visible_steps: VisibleSteps | None) -> None:
        """Set the steps that the state's ``visible_series`` cover; callable from any thread."""
        self._visible_steps = visible_steps
        self._wakeup.set()

    def load_device_curves(self, names: frozenset[str]) -> None:
        """Set which of ``device_curves.READINGS`` the state's ``device_curves`` have; callable from any thread."""
        self._metric_names = names
        self._wakeup.set()

    def _follow(self, reader: RunReader) -> None:
        problem = ""
        state = after = RunState()
        last_status_check = -STATUS_SECONDS
        loaded: VisibleSteps | None = None
        devices = DeviceCurvesReader(STATUS_SECONDS)
        while self.is_wanted:
            try:
                while update := reader.poll():
                    after = apply_update(after, update)
                    if not update.more:
                        break
                started_or_ended = (after.started, after.ended) != (state.started, state.ended)
                if started_or_ended or time.monotonic() - last_status_check >= STATUS_SECONDS:
                    last_status_check = time.monotonic()
                    if (lost := reader.link_problem) != after.link_problem:
                        after = replace(after, link_problem=lost)
                    info = printable_fields(reader.info())
                    if info != state.info:
                        after = replace(after, info=info)
                    if (waits := _why_queued(info)) != after.waits:
                        after = replace(after, waits=waits)
                    model = None if info.status.live else trained_model(self._directory)
                    if model != after.model:
                        after = replace(after, model=model)
                    if _of_many(info) and (workers := self._workers.poll()) is not after.workers:
                        after = replace(after, workers=workers)
                visible_steps = self._visible_steps
                has_new_steps = after.step != state.step
                if visible_steps != loaded or (
                    visible_steps and (not after.visible_series or (has_new_steps and visible_steps.stop > state.step))
                ):
                    after = replace(after, visible_series=_read_visible_series(reader, visible_steps))
                    loaded = visible_steps
                curves = devices.read(reader, self._metric_names, after.step_end_times, update)
                if curves is not None:
                    after = replace(after, device_curves=curves)
                if problem:
                    problem = ""
                    self.tell(NewState())
                if after is not state:
                    state = after
                    self.put(state)
            except RunError as error:
                # The disk may be back at the next poll, so this is reported once and tried again.
                if str(error) != problem:
                    problem = str(error)
                    self.tell(Unreadable(problem))
            starts = state.live and not state.step
            self.wait(STATUS_SECONDS if problem else STARTING_SECONDS if starts else POLL_SECONDS)


def _why_queued(info: RunInfo) -> str:
    """Why a queued run waits; empty for any other."""
    if info.status is not Status.QUEUED:
        return ""
    from accel_engine.run_queue.queue import why_waits  # seldom needed

    return why_waits(info.id)


def _of_many(info: RunInfo) -> bool:
    strategy = CATALOGUE.get(str(info.plan_values.get("strategy")))
    return strategy is not None and strategy.processes


def _read_visible_series(reader: RunReader, visible_steps: VisibleSteps | None) -> dict[str, RecordedCurve]:
    return (
        curves_of(reader.step_range(visible_steps.first, visible_steps.stop, visible_steps.width, visible_steps.series))
        if visible_steps
        else {}
    )
