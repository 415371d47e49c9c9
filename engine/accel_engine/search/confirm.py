"""Confirms the best plan with other seeds: the best of many noisy trials flatters itself."""

import math
import statistics
from collections.abc import Callable
from dataclasses import replace

from accel_engine.run.status import Status
from accel_engine.search.definition import Confirmation
from accel_engine.search.new_trials import OWN_FAILURES
from accel_engine.search.results import best_value
from accel_engine.search.scheduler import STOP_REASON, Scheduler
from accel_engine.search.trial import Trial
from accel_engine.search.trial_plan import trial_plan
from accel_engine.search.trial_runs import Observation


class Confirm:
    """Trains the best plan of a search again.

    Args:
        scheduler: The search, whose trials have ended.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._live: set[str] = set()
        self._lost: set[str] = set()
        self._values: dict[str, float] = {}
        self._is_interrupted = False

    def run(self, best: Trial, wait: Callable[[], object], before: Callable[[], object]) -> bool:
        """Train until all runs have ended; they are stopped, to be continued later, once trials train again.

        Args:
            best: The best trial.
            wait: Waits a moment.
            before: Called before each look; may stop the search, and start or continue trials.

        Returns:
            Whether the plan is confirmed; otherwise the search is to be run again.
        """
        scheduler = self._scheduler
        found = self._found(best)
        while True:
            before()
            if (scheduler.step() or scheduler.is_over) and not self._is_interrupted:
                self._is_interrupted = True
                self._stop()
            if not self._is_interrupted:
                found = self._start(found, best)
            found = self._observe(found)
            if not self._live and (self._is_interrupted or len(found.runs) >= scheduler.definition.confirm):
                return not self._is_interrupted
            wait()

    def _found(self, best: Trial) -> Confirmation:
        """What an earlier confirmation of the same trial has found, whose runs are continued."""
        found = self._scheduler.database.confirmation
        if found is None or found.trial != best.number:
            found = Confirmation(best.number)
            self._scheduler.database.set_confirmation(found)
        found = self._with_created(found)
        for run in found.runs:
            self._take_up(run)
        return found

    def _with_created(self, found: Confirmation) -> Confirmation:
        """With the run that a killed process has created, and has not noted."""
        runs = self._scheduler.runs
        created = [run for run, number in runs.find(self._scheduler.definition.name).items() if number is None]
        waiting = [run for run in created if run not in found.runs and runs.observe(run).status is Status.QUEUED]
        return replace(found, runs=(*found.runs, *waiting)[: self._scheduler.definition.confirm])

    def _take_up(self, run: str) -> None:
        observation = self._scheduler.runs.observe(run)
        is_cancelled = not observation.measurements  # while it waited for a device
        if observation.status is Status.STOPPED and (is_cancelled or STOP_REASON in observation.reason):
            self._scheduler.runs.reopen(run, {})
        self._live.add(run)

    def _start(self, found: Confirmation, best: Trial) -> Confirmation:
        scheduler = self._scheduler
        while len(found.runs) < scheduler.definition.confirm and len(self._live) < scheduler.at_once:
            seed = (best.seed or scheduler.definition.plan.get("seed", scheduler.definition.seed)) + len(found.runs) + 1
            plan = trial_plan(scheduler.definition, best.values, seed=seed, epochs=best.epochs)
            run = scheduler.runs.create(plan, scheduler.definition.name, None)
            found = replace(found, runs=(*found.runs, run))
            scheduler.database.set_confirmation(found)
            self._live.add(run)
        return found

    def _stop(self) -> None:
        for run in self._live:
            self._scheduler.runs.stop(run, STOP_REASON)

    def _observe(self, found: Confirmation) -> Confirmation:
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
                found = self._take_value(found, run, observation)
        return found

    def _start_run(self, run: str) -> None:
        try:
            self._scheduler.runs.start(run)
        except OWN_FAILURES as error:
            self._scheduler.runs.stop(run, str(error))
            self._live.discard(run)

    def _take_value(self, found: Confirmation, run: str, observation: Observation) -> Confirmation:
        """Note the monitor's best value of a run that was not stopped with the search."""
        monitor = self._scheduler.definition.objectives[0]
        value = best_value(monitor, (each.metrics.get(monitor.name, math.nan) for each in observation.measurements))
        is_stopped = STOP_REASON in observation.reason or observation.status is Status.QUEUED
        if value is None or is_stopped or observation.status not in (Status.FINISHED, Status.STOPPED):
            return found
        self._values[run] = value
        values = tuple(self._values[each] for each in found.runs if each in self._values)
        found = _summary(replace(found, values=values))
        self._scheduler.database.set_confirmation(found)
        return found


def _summary(found: Confirmation) -> Confirmation:
    """With the mean and the standard deviation of its values."""
    spread = statistics.stdev(found.values) if len(found.values) > 1 else None
    return replace(found, mean=statistics.fmean(found.values), spread=spread)
