"""The scheduler of a search: proposes trials, starts their runs, reports what they reach, and ends or continues them.

All of its state is in the search's study and in the runs. Every change is written before its effect, so that a process
continues where one before it was killed.
"""

import math
import time
from collections.abc import Iterable
from dataclasses import replace

from accel_engine import clock
from accel_engine.errors import AccelError
from accel_engine.run.engine.status import Status
from accel_engine.search.definition import FIGURES, StudyDefinition
from accel_engine.search.new_trials import TRIAL_ERRORS, NewTrials
from accel_engine.search.progress import common_failure, missing_metric, stop_reason
from accel_engine.search.results import COUNTED, objectives_at_best
from accel_engine.search.samplers import promotable, proposes_ahead
from accel_engine.search.study_writer import StudyWriter
from accel_engine.search.trial import PendingAction, Trial, TrialReport, TrialState
from accel_engine.search.trial_runs import Observation, TrialRuns, reason_after, state_after
from accel_engine.words import numbers

STOPPED_WITH_SEARCH = "the search is stopped"
"""Why the runs of a search stop with it."""


class Scheduler:
    """Runs one search.

    Args:
        study: The search's study.
        runs: The runs of the trials.

    Attributes:
        new_trials: Begins trials.
        stopping: Whether the search is being stopped.
        failure: Why the search has failed; empty if it has not.
        limit: Why no further trial starts; empty while some do.
    """

    def __init__(self, study: StudyWriter, runs: TrialRuns) -> None:
        self.study = study
        self.runs = runs
        self.new_trials = NewTrials(study, runs)
        self.stopping = False
        self.failure = ""
        self.limit = ""
        self._spent_before = study.database.part.spent
        self._began, self._since = time.monotonic(), clock.now()

    @property
    def definition(self) -> StudyDefinition:
        """The definition of the search."""
        return self.study.definition

    @property
    def spent(self) -> float:
        """Seconds for which the search has run."""
        return self._spent_before + time.monotonic() - self._began

    @property
    def at_once(self) -> int:
        """How many runs train at the same time."""
        return self.definition.at_once or self.runs.slots()

    def resume(self) -> None:
        """Continue where a process before this one was: with its proposals, its runs, and what it did not finish."""
        self.study.database.update(ended=None)
        created = {number: run for run, number in self.runs.find(self.definition.name).items() if number is not None}
        for trial in self.study.unfinished():
            self.new_trials.add(trial)
        for trial in self.study.own:
            if trial.state.live:
                self._resume_trial(trial, created.get(trial.number, ""))
            elif trial.state is TrialState.STOPPED and trial.pending:
                self.continue_(trial)
            else:
                self.study.end(trial)

    def _resume_trial(self, trial: Trial, created: str) -> None:
        """Do for a live trial what a killed process may not have done.

        Args:
            trial: The trial.
            created: Its run, which may not have been noted; empty if there is none.
        """
        if not trial.run and created:
            trial = self.study.put(replace(trial, run=created))
        if trial.pending not in (None, PendingAction.CONTINUE):
            self.runs.stop(trial.run, trial.reason)

    @property
    def is_over(self) -> bool:
        """Whether the search is being stopped, or has failed."""
        return self.stopping or bool(self.failure)

    def step(self) -> bool:
        """Do what is due; returns whether a trial is live, also on another machine."""
        for trial in self.study.live:
            self._advance(trial)
        self.new_trials.share_results()
        if not self.is_over:
            self._fill_slots()
        self.failure = self.failure or common_failure(self.study.own, self._since)
        if self.is_over:
            self._stop_all()
        return bool(self.study.live) or (self.study.others_live and not self.is_over)

    def run(self, turns: Iterable[None]) -> None:
        """Run until nothing is live and no further trial starts.

        Args:
            turns: Handles commands before each step, and waits a moment after it.
        """
        for _ in turns:
            if not self.step():
                return

    # What trials do

    def _advance(self, trial: Trial) -> None:
        """Start a trial that has not begun, or observe its run."""
        if not trial.run:
            self.new_trials.create_run(trial)
            return
        if trial.pending is PendingAction.CONTINUE:
            trial = self._reopen(trial)
            if not trial.state.live:
                return
        observation = self.runs.observe(trial.run)
        if observation.status is Status.QUEUED:
            if trial.pending:
                self.runs.stop(trial.run, trial.reason)
            else:
                self.new_trials.start_run(trial)  # which does nothing for a run that waits in the queue
            return
        if observation.status.live:
            reason = trial.reason if trial.pending else ""  # not why it was held
            trial = self.study.put(replace(trial, state=TrialState.RUNNING, reason=reason))
        trial = self._report(trial, observation)
        if not observation.status.live:
            self._conclude(trial, observation)

    def _report(self, trial: Trial, observation: Observation) -> Trial:
        """Report what is new, and stop a trial that the pruner ends; returns the trial."""
        monitor, known = self.definition.objectives[0].name, self.study.reports[trial.number]
        reported = [each for each in observation.measurements if math.isfinite(each.metrics.get(monitor, math.nan))]
        for number, each in enumerate(reported, 1):
            report = TrialReport(trial.number, each.epoch, each.step, each.time, float(each.metrics[monitor]))
            if number in known and known[number].value == report.value:
                continue
            is_worse = number not in known and self.study.should_prune(number, report)
            if is_worse and observation.status.live and not trial.pending:
                reason = f"not promising after {numbers.counted(len(reported), 'report')}"
                trial = self.stop_trial(trial, PendingAction.PRUNE, reason)
            self.study.add_report(number, report)
        return trial

    def stop_trial(self, trial: Trial, action: PendingAction, reason: str) -> Trial:
        """Ask the run of a trial to stop; returns the trial.

        Args:
            trial: The trial.
            action: Whether it is pruned, stopped or paused.
            reason: Why.
        """
        trial = self.study.put(replace(trial, pending=action, reason=reason))
        if trial.run:
            self.runs.stop(trial.run, reason)
        return trial

    def _conclude(self, trial: Trial, observation: Observation) -> None:
        """Note what became of a trial whose run has ended."""
        status = observation.status
        if trial.pending is PendingAction.PAUSE and status in (Status.STOPPED, Status.LOST):
            stopped = self.study.put(replace(trial, state=TrialState.STOPPED, ended=clock.now()))
            if not self.is_over:  # an earlier process has stopped it
                self.continue_(stopped)
            return
        if status is Status.LOST and not observation.out_of_memory and not trial.lost and not trial.pending:
            self.study.put(replace(trial, lost=trial.lost + 1, pending=PendingAction.CONTINUE))
            return
        state, objectives = state_after(trial, observation), {}
        reason = reason_after(trial, observation, state)
        if state in COUNTED:
            try:
                objectives = self._objectives(trial, observation)
            except AccelError as error:
                state, reason = TrialState.FAILED, str(error)
        ended = replace(trial, state=state, ended=clock.now(), reason=reason, pending=None, objectives=objectives)
        self.study.end(ended)
        self.study.database.update(spent=self.spent, spent_at_end=self.spent)
        self.failure = self.failure or missing_metric(self.definition, ended, observation)

    def _objectives(self, trial: Trial, observation: Observation) -> dict[str, float]:
        wanted = [each.name for each in self.definition.objectives if each.name in FIGURES]
        figures = self.runs.figures(trial.run, wanted) if wanted else {}
        return objectives_at_best(self.definition.objectives, observation.measurements, figures)

    # What starts and continues

    def _fill_slots(self) -> None:
        """Start trials while there is room; a pruned one that is among the best after all comes before a new one."""
        most = self.at_once
        if len(self.study.live) < most and proposes_ahead(self.definition) and not self.study.is_shared:
            most += self.runs.ahead()
        while len(self.study.live) < most and not common_failure(self.study.own, self._since):
            self.limit = stop_reason(self.definition, list(self.study.trials.values()), self.spent)
            if self.limit:
                return
            if (number := self._promoted()) is not None:
                self.continue_(self.study.trials[number])
                continue
            self.limit = self.new_trials.limit
            if not self.limit:
                self.study.sync()
                self.limit = self.new_trials.start()
            if self.limit:
                return

    def _promoted(self) -> int | None:
        """The pruned trial that is among the best after all."""
        if not self.study.uses_rungs:
            return None
        pruned = [each for each in self.study.own if each.state is TrialState.PRUNED and not each.pruned_by_user]
        there = [each.number for each in pruned if self.runs.exists(each.run)]
        return promotable(there, self.study.values, maximize=self.definition.objectives[0].maximize)

    def continue_(self, trial: Trial, *, epochs: int | None = None) -> None:
        """Continue an ended trial from its checkpoint.

        Args:
            trial: The trial.
            epochs: Epochs to train, if not as many as before.
        """
        epochs = trial.epochs if epochs is None else epochs
        now = clock.now()
        idle = trial.idle + (0.0 if trial.ended is None else max(0.0, now - trial.ended))
        waiting = replace(trial, state=TrialState.WAITING, epochs=epochs, ended=None, reason="")
        waiting = replace(waiting, pending=PendingAction.CONTINUE, pruned_by_user=False, continued=now, idle=idle)
        self._reopen(self.study.continue_(waiting))

    def _reopen(self, trial: Trial) -> Trial:
        changes = {} if trial.epochs is None else {"epochs": trial.epochs}
        try:
            self.runs.reopen(trial.run, changes)
        except TRIAL_ERRORS as error:
            return self.study.put(replace(trial, pending=None, reason=str(error)))
        trial = self.study.put(replace(trial, pending=None))
        if self.runs.observe(trial.run).status is Status.QUEUED:
            self.new_trials.start_run(trial)
        return self.study.trials[trial.number]

    def _stop_all(self) -> None:
        for trial in self.study.live:
            if not trial.pending:
                self.stop_trial(trial, PendingAction.PAUSE, STOPPED_WITH_SEARCH)
