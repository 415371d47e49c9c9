"""Decides what a run does between two chunks of steps: validate, save a checkpoint, end early."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeGuard

from accel_engine.errors import PlanError
from accel_engine.events import EpochEnded, Event, Outcome, Validated
from accel_engine.plan import Plan
from accel_engine.plan.interval import Interval
from accel_engine.plan.monitor import NOTHING_TO_VALIDATE, is_better_lower, unknown_direction, unmeasured
from accel_engine.run.history.early_stopping import EarlyStopping
from accel_engine.run.history.history import read_history
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.training.progress.timetable import Timetable
from accel_engine.training.reporting.run_reporter import RunReporter


class EndTraining(Exception):  # noqa: N818 (an end, not an error)
    """Raised in the training thread, between two chunks, to end the run before its last epoch.

    Attributes:
        outcome: How the run ends.
    """

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


class DueActions:
    """Decides which actions are due after some steps, and follows the monitored metric.

    Validating and saving need all workers. So what is due must follow from the step and the plan, or be the chief's
    decision (``agree``), which all workers ask for after the same steps: their clocks differ, and a worker that was
    killed may not have written its last event.

    Args:
        plan: The plan.
        monitor: The metric that counts, with ``validation_`` before one of validation.
        measured: Names of the metrics of validation, without a prefix; empty if they are unknown.
        trained: Names of the metrics of training.
        validates: Whether there is anything to validate.
        since: When training began, by ``time.monotonic()``, if this is not its first try; now by default.
        reporter: The run's step; if it continues, its events are read.
        agree: Returns the chief's decision, for all workers to follow.

    Attributes:
        metrics: The latest metrics of training and validation, also of engines before this one.

    Raises:
        PlanError: The monitored metric is not measured, or whether lower values are better is unknown.
    """

    def __init__(
        self,
        plan: Plan,
        monitor: str,
        measured: tuple[str, ...],
        trained: tuple[str, ...],
        reporter: RunReporter,
        agree: Callable[[bool], bool] = bool,
        *,
        validates: bool = True,
        since: float | None = None,
    ) -> None:
        self._plan = plan
        self._reporter = reporter
        self._agree = agree
        self._validates = validates
        self._timetable = Timetable(plan, validates=validates, since=since)
        self._stopping = _follow(plan, monitor, measured, trained, validates=validates)
        self.metrics: dict[str, float] = {}
        if reporter.step:
            history = read_history(reporter.run.directory)
            self._stopping.restore(history)
            self.metrics = history.metrics
            if agree(any(_is_planned(event) and event.step == reporter.step for event in history.validations)):
                self._timetable.validation.done(reporter.step)

    @property
    def best_step(self) -> int | None:
        """The step at which the monitored metric is at its best; ``None`` if unknown."""
        return self._stopping.best_step

    def best_among(self, steps: Iterable[int]) -> int | None:
        """The one of some steps at which the metric is at its best; ``None`` if it is known at none of them."""
        return self._stopping.best_among(steps)

    def steps_until_next(self, step: int) -> int | None:
        """Steps until something is due within an epoch, from a number of steps taken; ``None`` if nothing will be."""
        return self._timetable.steps_until_next(step)

    def next_epoch(self, epoch: int, can_afford: Callable[[], bool]) -> int:
        """The first epoch, from one on, after which the run may validate, save a checkpoint or end.

        Between two of them, the clock, commands and :meth:`steps_until_next` decide alone.

        Args:
            epoch: The first one to consider, from 1.
            can_afford: Whether saving a checkpoint keeps within its share of the time.
        """
        saves = self._timetable.saves_every_epoch and can_afford()
        counts = self._stopping.follows_epochs and (self._plan.patience is not None or self._plan.restore_best == "on")
        if saves or counts:
            return epoch
        return int(min(self._plan.epochs, self._timetable.next_epoch(epoch)))

    def change_interval(self, field: str, steps: int) -> str:
        """Validate, or save checkpoints, every ``steps`` steps from now on.

        Args:
            field: ``validation_every`` or ``checkpoint_every``.
            steps: Number of steps.

        Returns:
            Why that is impossible; empty if it is not.
        """
        if steps < 1:
            return "the number of steps must be at least 1"
        if field == "validation_every" and not self._timetable.validates:
            return "the run does not validate before its end"
        if field == "checkpoint_every":
            self._timetable.saves_every_epoch = False
        recurring = self._timetable.validation if field == "validation_every" else self._timetable.checkpoint
        recurring.repeat_every(Interval(steps, "steps"))
        return ""

    @property
    def within_epochs(self) -> bool:
        """Whether something may be due within an epoch."""
        return self._timetable.by_clock or self.steps_until_next(self._reporter.step) is not None

    @property
    def is_due_by_clock(self) -> bool:
        """Whether the clock says that something is due, on this worker."""
        return self._timetable.is_due_by_clock(self._reporter.step)

    @property
    def is_best(self) -> bool:
        """Whether the monitored metric is at its best at the current step, by the events of this worker."""
        return self.best_step == self._reporter.step

    def must_save_best(self) -> bool:
        """Whether the run needs a checkpoint of the current step, to restore the best weights at its end."""
        return self._plan.restore_best == "on" and self._agree(self.is_best)

    def observe(self, event: EpochEnded | Validated) -> EpochEnded | Validated:
        """Take the end of an epoch or a validation into account; returns it, with what it means for early stopping."""
        self._stopping.observe(event)
        self._note_metrics(event)
        if _is_planned(event):
            self._timetable.validation.done(event.step)
        return replace(event, waited=self._stopping.waited(event))

    def leave_out_validation(self) -> None:
        """Count the validation that is due now as done, as it is impossible."""
        self._timetable.validation.done(self._reporter.step)

    def _note_metrics(self, event: Event) -> None:
        match event:
            case EpochEnded(metrics=means):
                self.metrics |= means
            case Validated(metrics=means):
                self.metrics |= {f"{VALIDATION_PREFIX}{name}": value for name, value in means.items()}

    def validation_is_missing(self, epoch: int | None) -> bool:
        """Whether a validation is missing at the step that a run continues from; never if minutes decide on it.

        Args:
            epoch: Epochs taken, if that step ended one.
        """
        recurring, step = self._timetable.validation, self._reporter.step
        return step > 0 and not recurring.by_clock and recurring.is_due(step, epoch)

    def validation_is_due(self, epoch: int | None) -> bool:
        """Whether to validate now.

        Args:
            epoch: Epochs taken, if the last one has just ended.
        """
        recurring, step = self._timetable.validation, self._reporter.step
        if epoch == self._plan.epochs:
            return self.last_validation_is_due
        is_due = recurring.is_due(step, epoch)
        return self._agree(is_due) if recurring.by_clock else is_due

    @property
    def last_validation_is_due(self) -> bool:
        """Whether to validate now, if training has finished."""
        is_done = self._timetable.validation.is_done(self._reporter.step)
        return self._validates and self._plan.validation != "off" and not is_done

    def checkpoint_is_due(self, epoch: int | None, can_afford: Callable[[], bool]) -> bool:
        """Whether to save a checkpoint now, after a validation if there was one.

        Args:
            epoch: Epochs taken, if the last one has just ended.
            can_afford: Whether saving keeps within its share of the time.
        """
        recurring, step = self._timetable.checkpoint, self._reporter.step
        if epoch == self._plan.epochs:
            return True
        may_be_best = epoch is not None or self._timetable.validation.is_done(step)
        if may_be_best and self.must_save_best():
            return True
        if self._timetable.saves_every_epoch:
            return may_be_best and self._agree((epoch is not None or self.is_best) and can_afford())
        is_due = recurring.is_due(step, epoch)
        is_due = self._agree(is_due) if recurring.by_clock else is_due
        if is_due:
            recurring.done(step)
        return is_due

    def seconds_left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        return self._timetable.seconds_left

    def raise_if_over(self) -> None:
        """End the run if the metric has not improved for too long, or the time limit is reached.

        Raises:
            EndTraining: The run ends; its reason says why.
        """
        if self._plan.patience is not None and self._agree(self._stopping.should_stop):
            raise EndTraining(Outcome.FINISHED, self._stopping.reason)
        if self._plan.time_limit and self._agree(self._timetable.is_over):
            raise EndTraining(Outcome.STOPPED, f"the time limit of {self._plan.time_limit} is reached")


def _is_planned(event: Event) -> TypeGuard[Validated]:
    """Whether an event is a validation that the plan asked for."""
    return isinstance(event, Validated) and not event.by_command


def _follow(
    plan: Plan, monitor: str, measured: tuple[str, ...], trained: tuple[str, ...], *, validates: bool
) -> EarlyStopping:
    is_needed = plan.patience is not None or plan.restore_best == "on"
    name = monitor.removeprefix(VALIDATION_PREFIX)
    if is_needed and name != monitor and not validates:
        raise PlanError("monitor", plan.monitor, *NOTHING_TO_VALIDATE)
    if is_needed and measured and (reason := unmeasured(monitor, trained, measured)):
        raise PlanError("monitor", plan.monitor, *reason)
    lower = is_better_lower(monitor, plan.monitor_mode)
    if lower is None and is_needed:
        raise PlanError("monitor_mode", plan.monitor_mode, *unknown_direction(monitor))
    return EarlyStopping(monitor, lower=bool(lower), min_delta=plan.min_delta, patience=plan.patience)
