"""The search itself: proposes trials, starts their runs, reports what they reach, and ends or continues them.

All of its state is in the search's database, in Optuna's storage and in the runs. Every change is written before its
effect, so that a process that starts after another was killed goes on where that one was.
"""

import math
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from accel_engine import clock
from accel_engine.errors import AccelError, DataError, ModelError, PlanError
from accel_engine.run.status import Status
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.endings import common_failure, over, unreported
from accel_engine.search.infeasible import known_to_fail
from accel_engine.search.objectives import FIGURES
from accel_engine.search.promotion import promotable
from accel_engine.search.proposals import Proposal, Proposals
from accel_engine.search.results import COUNTED, objectives_at_best
from accel_engine.search.space import MAX_POINTS, all_points, count_points
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.trial import CONTINUING, PRUNED_BY_USER, WITH_SEARCH, Report, Trial, TrialState
from accel_engine.search.trial_book import TrialBook
from accel_engine.search.trial_outcome import proposal_of, reason_after, state_after
from accel_engine.search.trial_plan import trial_plan
from accel_engine.search.trial_runs import Observation, TrialRuns

REPEATS = 5
"""Proposals in a row with values that were tried, after which others are chosen at random from those that were not."""

STOP_REASON = "the search is stopped"
"""Why the runs of a search stop with it."""

_OWN_FAILURES = (PlanError, DataError, ModelError)
"""Errors of a trial's values; others concern the machine, and would meet the next trial as well."""


class Scheduler:
    """Runs one search.

    Args:
        database: The search.
        proposals: Proposes values.
        runs: The runs of the trials.
        refresh: Takes over what other machines have done; called before a trial starts.

    Attributes:
        book: The trials.
        stopping: Whether the search is being stopped.
        failure: Why the search has failed; empty if it has not.
        limit: Why no further trial starts; empty while some do.
    """

    def __init__(
        self,
        database: StudyDatabase,
        proposals: Proposals,
        runs: TrialRuns,
        refresh: Callable[[TrialBook], object] = lambda _: None,
    ) -> None:
        self.database = database
        self.proposals = proposals
        self.runs = runs
        self._refresh = refresh
        self.book = TrialBook(database)
        self.stopping = False
        self.failure = ""
        self.limit = ""
        self._spent_before = database.spent
        self._began = time.monotonic()

    @property
    def definition(self) -> StudyDefinition:
        """What is searched."""
        return self.proposals.definition

    @property
    def spent(self) -> float:
        """Seconds for which the search has run."""
        return self._spent_before + time.monotonic() - self._began

    @property
    def at_once(self) -> int:
        """How many runs train at the same time."""
        return self.definition.at_once or self.runs.slots()

    def take_up(self) -> None:
        """Go on where a process before this one was: with its proposals, its runs, and what it did not finish."""
        self.database.set_ended(None)
        created = {number: run for run, number in self.runs.find(self.definition.name).items() if number is not None}
        for proposal in self.proposals.unfinished():
            if proposal.number not in self.book:
                self._add(proposal)
        for trial in self.book.own:
            if trial.state.live:
                self._take_up_trial(trial, created.get(trial.number, ""))
            elif trial.state is TrialState.STOPPED and trial.ending == WITH_SEARCH:
                self.continue_(trial)
            else:
                self._tell(trial)

    def _take_up_trial(self, trial: Trial, created: str) -> None:
        """Do for a live trial what a killed process may not have done.

        Args:
            trial: The trial.
            created: Its run, which may not have been noted; empty if there is none.
        """
        if not trial.run and created:
            trial = self.book.put(replace(trial, run=created))
        reports = self.book.reports(trial.number)
        for number, report in enumerate(reports, 1):
            self.proposals.report(proposal_of(trial), report.value, number)
        if trial.ending not in ("", CONTINUING):
            self.runs.stop(trial.run, trial.reason)
        elif (
            reports
            and not trial.pinned
            and not trial.ending
            and self.proposals.should_prune(proposal_of(trial), again=True)
        ):
            self._prune(trial)

    def step(self) -> bool:
        """Do what is due; returns whether anything is live or was started."""
        for trial in self.book.live:
            self._advance(trial)
        self._take_shared_results()
        self.failure = self.failure or common_failure(self.book.own)
        if self.failure or self.stopping:
            self._stop_all()
        else:
            self._fill_slots()
        return bool(self.book.live)

    def run(self, wait: Callable[[], object], before: Callable[[], object]) -> None:
        """Run until nothing is live and no further trial starts.

        Args:
            wait: Waits a moment.
            before: Called before each look.
        """
        while True:
            before()
            if not self.step():
                return
            wait()

    # What trials do

    def _advance(self, trial: Trial) -> None:
        """Start a trial that has not begun, or look at its run."""
        if not trial.run:
            self._create_run(trial)
            return
        if trial.ending == CONTINUING:
            trial = self._reopen(trial)
        observation = self.runs.observe(trial.run)
        if observation.status is Status.QUEUED:
            self.runs.start(trial.run)  # which does nothing for a run that waits in the queue
            return
        trial = self.book.put(replace(trial, state=TrialState.RUNNING) if observation.status.live else trial)
        is_pruned = self._report(trial, observation)
        if not observation.status.live:
            self._conclude(trial, observation)
        elif is_pruned:
            self._prune(trial)

    def _report(self, trial: Trial, observation: Observation) -> bool:
        """Report what is new; returns whether the pruner ends the trial."""
        monitor, is_pruned = self.definition.objectives[0].name, bool(trial.ending or trial.pinned)
        reported = [each for each in observation.measurements if math.isfinite(each.metrics.get(monitor, math.nan))]
        for number, each in enumerate(reported, 1):
            value = float(each.metrics[monitor])
            if self.book.add_report(Report(trial.number, each.epoch, each.step, each.time, value)):
                self.proposals.report(proposal_of(trial), value, number)
                is_pruned = is_pruned or self.proposals.should_prune(proposal_of(trial))
        return is_pruned and not trial.ending and not trial.pinned

    def _prune(self, trial: Trial) -> None:
        count = len(self.book.reports(trial.number))
        self.end(trial, TrialState.PRUNED, f"not promising after {count} report{'s' * (count != 1)}")

    def end(self, trial: Trial, ending: str, reason: str) -> None:
        """Ask the run of a trial to stop.

        Args:
            trial: The trial.
            ending: As :attr:`Trial.ending`.
            reason: Why.
        """
        self.book.put(replace(trial, ending=str(ending), reason=reason))
        if trial.run:
            self.runs.stop(trial.run, reason)

    def _conclude(self, trial: Trial, observation: Observation) -> None:
        """Note what became of a trial whose run has ended."""
        status = observation.status
        if trial.ending == WITH_SEARCH and status in (Status.STOPPED, Status.LOST):
            held = self.book.put(replace(trial, state=TrialState.STOPPED, ended=clock.now()))
            if not self.stopping:  # an earlier process has stopped it
                self.continue_(held)
            return
        if status is Status.LOST and not observation.out_of_memory and not trial.lost and not trial.ending:
            self.book.put(replace(trial, lost=trial.lost + 1, ending=CONTINUING))
            return
        state, objectives = state_after(trial, observation), {}
        reason = reason_after(trial, observation, state)
        if state in COUNTED:
            try:
                objectives = self._objectives(trial, observation)
            except AccelError as error:
                state, reason = TrialState.FAILED, str(error)
        ending = trial.ending if trial.ending == PRUNED_BY_USER else ""
        ended = replace(trial, state=state, ended=clock.now(), reason=reason, ending=ending, objectives=objectives)
        self._tell(self.book.put(ended))
        self.failure = self.failure or unreported(self.definition, ended, observation)

    def _objectives(self, trial: Trial, observation: Observation) -> dict[str, float]:
        wanted = [each.name for each in self.definition.objectives if each.name in FIGURES]
        figures = self.runs.figures(trial.run, wanted) if wanted else {}
        return objectives_at_best(self.definition.objectives, observation.measurements, figures)

    def _tell(self, trial: Trial) -> None:
        """Tell the sampler what became of a trial."""
        names = [each.name for each in self.definition.objectives]
        is_whole = trial.state in (TrialState.FINISHED, TrialState.STOPPED) and all(
            name in trial.objectives for name in names
        )
        results = [trial.objectives[name] for name in names] if is_whole else None
        self.proposals.finish(proposal_of(trial), results, "" if is_whole else trial.reason or str(trial.state))

    # What starts and continues

    def _fill_slots(self) -> None:
        """Start trials while there is room; a pruned one that is among the best after all comes before a new one."""
        while len(self.book.live) < self.at_once and not common_failure(self.book.own):
            self.limit = over(self.definition, list(self.book), self.spent)
            if self.limit:
                return
            if (number := self._promoted()) is not None:
                self.continue_(self.book[number])
            elif not self._start_new():
                return

    def _promoted(self) -> int | None:
        """The pruned trial that is among the best after all."""
        if not self.proposals.uses_rungs:
            return None
        pruned = [each.number for each in self.book.own if each.state is TrialState.PRUNED and not each.ending]
        return promotable(pruned, self.book.values(), maximize=self.definition.objectives[0].maximize)

    def _start_new(self) -> bool:
        """Start another trial; returns whether one was started."""
        self._refresh(self.book)
        if self.book.counted >= self.definition.trials:
            self.limit = f"all {self.definition.trials} trials are done"
            return False
        points = count_points(self.definition.parameters)
        repeats = REPEATS if points is None or len(self.book) < points else 0
        return any(self._add(self.proposals.propose()) for _ in range(repeats)) or self._start_untried(points)

    def _start_untried(self, points: int | None) -> bool:
        """Start a trial with values that no trial had, where they can be counted; returns whether there were any."""
        parameters = self.definition.parameters
        if points is None or points > MAX_POINTS:
            return self._add(self.proposals.propose())
        untried = list(all_points(parameters))
        random.Random(self.definition.seed + len(self.book)).shuffle(untried)  # noqa: S311 (no secret)
        for values in untried:
            if not self._is_tried(values):
                return self._add(self.proposals.propose(values))
        self.limit = "all combinations of values are tried"
        return False

    def _is_tried(self, values: dict[str, Any]) -> bool:
        try:
            same = self.book.with_same_plan(self.definition, values)
        except PlanError:
            return any(each.values == values for each in self.book)
        return same is not None or known_to_fail(values, self.book) is not None

    def _add(self, proposal: Proposal) -> bool:
        """Add the trial of a proposal; returns whether it has a run of its own."""
        trial = Trial(proposal.number, "", TrialState.WAITING, proposal.values, started=clock.now())
        try:
            same = self.book.with_same_plan(self.definition, proposal.values)
        except PlanError as error:
            self._fail(trial, str(error))
            return True
        if same is not None:
            self.book.put(replace(trial, duplicate_of=same.number))
            self._take_shared_results()
            return False
        if (failed := known_to_fail(proposal.values, self.book)) is not None:
            reason = f"trial {failed.number} ran out of memory with no more"
            shared = replace(trial, state=TrialState.OUT_OF_MEMORY, duplicate_of=failed.number, reason=reason)
            self._tell(self.book.put(replace(shared, ended=clock.now())))
            return False
        self._create_run(self.book.put(trial))
        return True

    def _create_run(self, trial: Trial) -> None:
        definition, number = self.definition, trial.number
        try:
            plan = trial_plan(definition, trial.values, number=number, seed=trial.seed, epochs=trial.epochs)
            run = self.runs.create(plan, definition.name, number)
        except _OWN_FAILURES as error:
            self._fail(trial, str(error))
            return
        self.book.put(replace(trial, run=run))
        self.proposals.note_run(proposal_of(trial), run)
        self.runs.start(run)

    def _fail(self, trial: Trial, reason: str) -> None:
        self._tell(self.book.put(replace(trial, state=TrialState.FAILED, reason=reason, ended=clock.now())))

    def continue_(self, trial: Trial, *, epochs: int | None = None) -> None:
        """Continue an ended trial from its checkpoint.

        Args:
            trial: The trial.
            epochs: Epochs to train, if not as many as before.
        """
        is_held = trial.ending == WITH_SEARCH
        proposal = proposal_of(trial) if is_held else self.proposals.continue_(trial.number, proposal_of(trial))
        epochs = trial.epochs if epochs is None else epochs
        going = replace(trial, state=TrialState.WAITING, proposal=proposal, epochs=epochs, ended=None, reason="")
        self._reopen(self.book.put(replace(going, ending=CONTINUING)))

    def clone(self, trial: Trial) -> int:
        """Train the plan of a trial again, with another seed; returns the seed."""
        base = int(self.definition.plan.get("seed", self.definition.seed))
        seed = 1 + max([base, *(each.seed or 0 for each in self.book)])
        proposal = self.proposals.propose(trial.values)
        clone = Trial(proposal.number, "", TrialState.WAITING, proposal.values, started=clock.now(), seed=seed)
        self.book.put(replace(clone, epochs=trial.epochs))  # the next look creates its run
        return seed

    def _reopen(self, trial: Trial) -> Trial:
        changes = {} if trial.epochs is None else {"epochs": trial.epochs}
        try:
            self.runs.reopen(trial.run, changes)
        except _OWN_FAILURES as error:
            return self.book.put(replace(trial, ending="", reason=str(error)))
        if self.runs.observe(trial.run).status is Status.QUEUED:
            self.runs.start(trial.run)
        return self.book.put(replace(trial, ending=""))

    def _take_shared_results(self) -> None:
        """End the trials that share the result of another one which has ended."""
        for trial in self.book:
            if trial.duplicate_of is None or not trial.state.live or trial.machine:
                continue
            same = self.book[trial.duplicate_of]
            if not same.state.live and same.ending != WITH_SEARCH:
                shared = replace(trial, state=same.state, objectives=same.objectives, reason=same.reason)
                self._tell(self.book.put(replace(shared, ended=clock.now())))

    def _stop_all(self) -> None:
        for trial in self.book.live:
            if not trial.run:  # its run was never created
                self.book.put(replace(trial, state=TrialState.STOPPED, ending=WITH_SEARCH, ended=clock.now()))
            elif trial.ending != WITH_SEARCH:
                self.end(trial, WITH_SEARCH, STOP_REASON)
