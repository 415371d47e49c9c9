"""Confirms the best plan with other seeds, as the best value of many noisy trials is too good."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import replace

from accel_engine.run.engine.status import Status
from accel_engine.search.definition import Confirmation
from accel_engine.search.new_trials import TRIAL_ERRORS
from accel_engine.search.results import best_value
from accel_engine.search.scheduler import STOPPED_WITH_SEARCH, Scheduler
from accel_engine.search.trial import Trial
from accel_engine.search.trial_plan import trial_plan
from accel_engine.search.trial_runs import Observation


class ConfirmingRuns:
    """The runs that train the best plan of a search again, with other seeds.

    Args:
        scheduler: The search, whose trials have ended.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._live: set[str] = set()
        self._lost: set[str] = set()
        self._values: dict[str, float] = {}
        self._is_interrupted = False

    def run(self, best: Trial, turns: Iterable[None]) -> bool:
        """Train until all runs have ended; they are stopped, to be continued later, once trials train again.

        Args:
            best: The best trial.
            turns: Handles commands before each step, which may stop the search, and waits a moment after it.

        Returns:
            Whether the plan is confirmed; otherwise the search is to be run again.
        """
        scheduler = self._scheduler
        confirmation = self._resume(best)
        for _ in turns:
            if (scheduler.step() or scheduler.is_over) and not self._is_interrupted:
                self._is_interrupted = True
                self._stop()
            if not self._is_interrupted:
                confirmation = self._start(confirmation, best)
            confirmation = self._observe(confirmation)
            if not self._live and (self._is_interrupted or len(confirmation.runs) >= scheduler.definition.confirm):
                break
        return not self._is_interrupted

    def _resume(self, best: Trial) -> Confirmation:
        """Continue the runs of an earlier confirmation of the same trial."""
        confirmation = self._scheduler.study.database.part.confirmation
        if confirmation is None or confirmation.trial != best.number:
            confirmation = Confirmation(best.number)
            self._scheduler.study.database.update(confirmation=confirmation)
        confirmation = self._with_created(confirmation)
        for run in confirmation.runs:
            self._resume_run(run)
        return confirmation

    def _with_created(self, confirmation: Confirmation) -> Confirmation:
        """With the run that a killed process has created, and has not noted."""
        runs = self._scheduler.runs
        created = [run for run, number in runs.find(self._scheduler.definition.name).items() if number is None]
        waiting = [run for run in created if run not in confirmation.runs and runs.observe(run).status is Status.QUEUED]
        return replace(confirmation, runs=(*confirmation.runs, *waiting)[: self._scheduler.definition.confirm])

    def _resume_run(self, run: str) -> None:
        observation = self._scheduler.runs.observe(run)
        is_cancelled = not observation.measurements  # while it waited for a device
        if observation.status is Status.STOPPED and (is_cancelled or STOPPED_WITH_SEARCH in observation.reason):
            self._scheduler.runs.reopen(run, {})
        self._live.add(run)

    def _start(self, confirmation: Confirmation, best: Trial) -> Confirmation:
        scheduler = self._scheduler
        seed = scheduler.definition.plan.get("seed", scheduler.definition.seed)
        seed += len(confirmation.runs)
        while len(confirmation.runs) < scheduler.definition.confirm and len(self._live) < scheduler.at_once:
            seed += 1
            plan = trial_plan(scheduler.definition, best.values, seed=seed, epochs=best.epochs)
            run = scheduler.runs.create(plan, scheduler.definition.name, None)
            confirmation = replace(confirmation, runs=(*confirmation.runs, run))
            scheduler.study.database.update(confirmation=confirmation)
            self._live.add(run)
        return confirmation

    def _stop(self) -> None:
        for run in self._live:
            self._scheduler.runs.stop(run, STOPPED_WITH_SEARCH)

    def _observe(self, confirmation: Confirmation) -> Confirmation:
        runs = self._scheduler.runs
        for run in sorted(self._live):
            observation = runs.observe(run)
            if observation.status is Status.QUEUED and not self._is_interrupted:
                self._start_run(run)
            elif observation.status is Status.LOST and run not in self._lost and not self._is_interrupted:
                self._lost.add(run)
                runs.reopen(run, {})
            elif not observation.status.live or (self._is_interrupted and observation.status is Status.QUEUED):
                self._live.discard(run)
                confirmation = self._take_value(confirmation, run, observation)
        return confirmation

    def _start_run(self, run: str) -> None:
        try:
            self._scheduler.runs.start(run)
        except TRIAL_ERRORS as error:
            self._scheduler.runs.stop(run, str(error))
            self._live.discard(run)

    def _take_value(self, confirmation: Confirmation, run: str, observation: Observation) -> Confirmation:
        """Note the monitor's best value of a run that was not stopped with the search."""
        monitor = self._scheduler.definition.objectives[0]
        value = best_value(monitor, (each.metrics.get(monitor.name, math.nan) for each in observation.measurements))
        is_stopped = STOPPED_WITH_SEARCH in observation.reason or observation.status is Status.QUEUED
        if value is None or is_stopped or observation.status not in (Status.FINISHED, Status.STOPPED):
            return confirmation
        self._values[run] = value
        values = tuple(self._values[each] for each in confirmation.runs if each in self._values)
        confirmation = _summary(replace(confirmation, values=values))
        self._scheduler.study.database.update(confirmation=confirmation)
        return confirmation


def _summary(confirmation: Confirmation) -> Confirmation:
    """With the mean and the standard deviation of its values."""
    spread = statistics.stdev(confirmation.values) if len(confirmation.values) > 1 else None
    return replace(confirmation, mean=statistics.fmean(confirmation.values), spread=spread)
