"""The loss of each step of a trial, from its run."""

from contextvars import copy_context
from functools import partial
from pathlib import Path
from threading import Thread

from textual import on

from accel_engine.search.trial import Trial
from accel_engine.words import numbers
from accel_tui.run_state.run_follower import RunFollower
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import Series
from accel_tui.widgets.chart_panels.run_panels import points_of

LOSS = "loss"
"""The series."""


class TrialLoss(Chart):
    """A chart of the loss of one trial; empty for a trial without a run."""

    _follower: RunFollower | None = None
    _run: Path | None = None

    def on_mount(self) -> None:
        """Format the values as elsewhere."""
        super().on_mount()
        self.format = numbers.metric

    def on_unmount(self) -> None:
        """Stop following."""
        self._stop()

    def follow(self, trial: Trial | None, run: Path | None) -> None:
        """Show the loss of a trial.

        Args:
            trial: The trial.
            run: Directory of its run; ``None`` for none.
        """
        self.set_class(run is not None, "-read")
        if run == self._run:
            return
        self._stop()
        self._run = run
        self.title = f"loss of trial {trial.number}" if trial else "loss"
        self.empty = "no steps recorded"
        self.series = ()
        if run is None:
            return
        follower = RunFollower(run, on_news=partial(self.call_later, self._show, run), on_problem=lambda _: None)
        self._follower = follower
        # A thread of its own: the app's worker pool is small.
        Thread(target=copy_context().run, args=(follower.run,), daemon=True).start()

    def _stop(self) -> None:
        if self._follower:
            self._follower.stop()
        self._follower = None

    def _show(self, run: Path) -> None:
        if self._follower is None or run != self._run:
            return  # another trial is shown by now
        state = self._follower.latest()
        self.end = _end(state)
        training = Series("step", state.curves[LOSS]) if LOSS in state.curves else None
        points = points_of(state.validation_of(LOSS))
        validation = Series("validation", points=points, style="secondary") if points else None
        self.series = tuple(each for each in (training, validation) if each)

    @on(Chart.Pointed)
    def _show_values(self, message: Chart.Pointed) -> None:
        """Show the values at the mouse."""
        message.stop()
        self.cursor = None if message.step is None else max(0, round(message.step))


def _end(state: RunState) -> int | None:
    """The last step that the run will have, if known."""
    return state.step if state.has_ended else state.last_step
