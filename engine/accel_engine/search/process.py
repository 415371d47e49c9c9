"""The process that runs a search, from where the one before it was to its end."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from optuna.trial import TrialState as OptunaState

from accel_engine import clock
from accel_engine.errors import AccelError
from accel_engine.search.command_handlers import handle_commands, refuse_outdated_stops
from accel_engine.search.confirm import Confirm
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.parameter_names import RemoteTrial
from accel_engine.search.progress import trials_done
from accel_engine.search.proposals import Proposals
from accel_engine.search.results import best_trial, search_ended
from accel_engine.search.scheduler import Scheduler
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import JOURNAL
from accel_engine.search.trial import Trial, TrialReport, TrialState
from accel_engine.search.trial_runs import TrialRuns
from accel_engine.search.trial_store import TrialStore

INTERVAL = 0.2
"""Seconds from one poll of the runs to the next."""

SHARED_INTERVAL = 2.0
"""Seconds from one poll of what other machines do to the next."""

_STATES = {
    OptunaState.WAITING: TrialState.WAITING,
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.COMPLETE: TrialState.FINISHED,
    OptunaState.PRUNED: TrialState.PRUNED,
}


def run_search(
    directory: Path, runs: TrialRuns, wait: Callable[[float], object] = time.sleep, since: float | None = None
) -> Mapping[str, Any]:
    """Run a search to its end.

    Args:
        directory: Its directory, whose lock this process holds.
        runs: The runs of the trials.
        wait: Waits for seconds.
        since: When this process was asked for, in seconds since the Unix epoch; older commands to stop are refused. By
            default now.

    Returns:
        The object of the last line of JSON, which is in the search's database, too.

    Raises:
        AccelError: The search cannot continue now; it can later. The reason is in its database, if that can be written.
    """
    with StudyDatabase(directory) as database:
        try:
            return _run(database, runs, wait, clock.now() if since is None else since)
        except AccelError as error:
            with suppress(AccelError):
                trials = database.trials()
                database.set_ended(
                    search_ended(database.definition, trials, "failed", str(error), database.confirmation)
                )
            raise


def _run(database: StudyDatabase, runs: TrialRuns, wait: Callable[[float], object], since: float) -> Mapping[str, Any]:
    definition = database.definition
    own = str(database.directory / JOURNAL)
    is_shared = definition.storage not in ("", own)
    proposals = Proposals(definition, definition.storage or own, database.member, is_shared=is_shared)

    def refresh(trials: TrialStore) -> None:
        if is_shared:
            _take_over(trials, database, proposals)

    scheduler = Scheduler(database, proposals, runs, refresh)
    refuse_outdated_stops(scheduler, since)
    scheduler.resume()
    poll = _Poll(scheduler, refresh)
    is_confirmed = False
    while not is_confirmed and not scheduler.is_over:
        scheduler.run(lambda: wait(INTERVAL), poll.before)
        refresh(scheduler.trials)  # another machine may have just started a trial
        is_confirmed = not scheduler.step() and _confirm(scheduler, wait, poll.before, is_shared=is_shared)
    poll.note_time()
    outcome = "failed" if scheduler.failure else "stopped" if scheduler.stopping else "finished"
    reason = scheduler.failure or ("stopped by a user" if scheduler.stopping else scheduler.limit)
    trials = sorted(scheduler.trials, key=lambda trial: trial.number)
    best, confirmation = best_trial(scheduler.definition, trials), database.confirmation
    if best is None or (confirmation is not None and confirmation.trial != best.number):
        confirmation = None  # the one that was confirmed is no longer the best
    ended = search_ended(scheduler.definition, trials, outcome, reason, confirmation)
    database.set_ended(ended)
    return ended


def _confirm(
    scheduler: Scheduler, wait: Callable[[float], object], before: Callable[[], object], *, is_shared: bool
) -> bool:
    """Confirm the best plan, unless another machine does; returns whether nothing is left to do."""
    best = best_trial(scheduler.definition, scheduler.trials)
    if best is None or not scheduler.definition.confirm or scheduler.is_over:
        return True
    if is_shared:
        scheduler.proposals.claim_confirmation(best.number)
        wait(SHARED_INTERVAL)  # until a claim of the same moment is there, too
        if not scheduler.proposals.claim_confirmation(best.number):
            return True
    return Confirm(scheduler).run(best, lambda: wait(INTERVAL), before)


class _Poll:
    """What a search does before each poll of its runs.

    Args:
        scheduler: The search.
        refresh: Takes over what other machines have done.
    """

    def __init__(self, scheduler: Scheduler, refresh: Callable[[TrialStore], object]) -> None:
        self._scheduler = scheduler
        self._refresh = refresh
        self._next = 0.0
        self._done = self._done_elsewhere()

    def before(self) -> None:
        """Handle commands; now and then note the time and take over what other machines have done."""
        handle_commands(self._scheduler)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + SHARED_INTERVAL
            self.note_time()
            self._refresh(self._scheduler.trials)

    def note_time(self) -> None:
        """Note for how long the search has run, and had when another machine ended a trial."""
        before, self._done = self._done, self._done_elsewhere()
        self._scheduler.database.set_spent(self._scheduler.spent, is_trial_end=self._done != before)

    def _done_elsewhere(self) -> int:
        """The number of trials that other machines have done."""
        return trials_done(trial for trial in self._scheduler.trials if trial.machine)


def _take_over(book: TrialStore, database: StudyDatabase, proposals: Proposals) -> None:
    """Take over trials, and changes of ranges and of the number of trials."""
    for remote in proposals.others():
        if remote.state in _STATES and remote.values:
            known = book.get(remote.number)
            found = _trial(remote, proposals.definition)
            if known is None or known.state.live or (known.state, known.machine) != (found.state, found.machine):
                book.put(found)
                for number, value in remote.reports.items():
                    book.add_report(TrialReport(remote.number, number, number, remote.started, value))
    theirs, ours = proposals.shared_definition(), proposals.definition
    if (theirs.parameters, theirs.trials) != (ours.parameters, ours.trials):
        changed = replace(ours, parameters=theirs.parameters, trials=theirs.trials)
        database.set_definition(changed)
        proposals.set_definition(changed, share=False)


def _trial(remote: RemoteTrial, definition: StudyDefinition) -> Trial:
    names = [each.name for each in definition.objectives]
    state = _STATES[remote.state]
    if remote.is_lost:
        state = TrialState.LOST
    elif remote.has_failed:
        state = TrialState.OUT_OF_MEMORY if remote.reason == "out of memory" else TrialState.FAILED
    return Trial(
        number=remote.number,
        run="",
        state=state,
        values=remote.values,
        objectives=dict(zip(names, remote.results, strict=False)),
        reason="its machine no longer responds" if remote.is_lost else remote.reason,
        started=remote.started,
        ended=clock.now() if remote.is_lost else remote.ended,
        machine=remote.machine,
        proposal=remote.proposal,
    )
