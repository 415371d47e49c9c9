"""The process that runs a search, from where the one before it was to its end."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from accel_engine.errors import AccelError
from accel_engine.search.command_handlers import handle_commands
from accel_engine.search.confirmation import ConfirmingRuns
from accel_engine.search.progress import trials_done
from accel_engine.search.results import best_trial
from accel_engine.search.scheduler import Scheduler
from accel_engine.search.search_events import search_ended
from accel_engine.search.study_writer import StudyWriter
from accel_engine.search.trial_runs import TrialRuns

INTERVAL = 0.2
"""Seconds from one poll of the runs to the next."""

SHARED_INTERVAL = 2.0
"""Seconds from one poll of what other machines do to the next."""


def run_search(directory: Path, runs: TrialRuns, wait: Callable[[float], object] = time.sleep) -> Mapping[str, Any]:
    """Run a search to its end.

    Args:
        directory: Its directory, whose lock this process holds.
        runs: The runs of the trials.
        wait: Waits for seconds.

    Returns:
        The object of the last line of JSON, which is in the search's database, too.

    Raises:
        AccelError: The search cannot continue now; it can later. The reason is in its database, unless the study or the
            database cannot be opened.
    """
    with StudyWriter(directory) as study:
        try:
            return _run(Scheduler(study, runs), wait)
        except AccelError as error:
            with suppress(AccelError):
                trials, confirmation = tuple(study.trials.values()), study.database.part.confirmation
                study.database.update(ended=search_ended(study.definition, trials, "failed", str(error), confirmation))
            raise


def _run(scheduler: Scheduler, wait: Callable[[float], object]) -> Mapping[str, Any]:
    study = scheduler.study
    scheduler.resume()
    poll = _Poll(scheduler, wait)
    is_confirmed = False
    while not is_confirmed and not scheduler.is_over:
        scheduler.run(poll.turns())
        study.sync()  # another machine may have just started a trial
        is_confirmed = not scheduler.step() and _run_confirmation(scheduler, poll)
    poll.note_time()
    outcome = "failed" if scheduler.failure else "stopped" if scheduler.stopping else "finished"
    reason = scheduler.failure or ("stopped by a user" if scheduler.stopping else scheduler.limit)
    trials = sorted(study.trials.values(), key=lambda trial: trial.number)
    best, confirmation = best_trial(study.definition, trials), study.database.part.confirmation
    if best is None or (confirmation is not None and confirmation.trial != best.number):
        confirmation = None  # the one that was confirmed is no longer the best
    ended = search_ended(study.definition, trials, outcome, reason, confirmation)
    study.database.update(ended=ended)
    return ended


def _run_confirmation(scheduler: Scheduler, poll: "_Poll") -> bool:
    """Confirm the best plan, unless another machine does; returns whether nothing is left to do."""
    study = scheduler.study
    best = best_trial(study.definition, study.trials.values())
    if best is None or not study.definition.confirm or scheduler.is_over:
        return True
    if study.is_shared:
        study.claim_confirmation(best.number)
        poll.wait(SHARED_INTERVAL)  # until a claim of the same moment is there, too
        if not study.claim_confirmation(best.number):
            return True
    return ConfirmingRuns(scheduler).run(best, poll.turns())


class _Poll:
    """Polls the runs of a search.

    Args:
        scheduler: The search.
        wait: Waits for seconds.
    """

    def __init__(self, scheduler: Scheduler, wait: Callable[[float], object]) -> None:
        self._scheduler = scheduler
        self.wait = wait
        self._next = 0.0
        self._done = self._done_elsewhere()

    def turns(self) -> Iterator[None]:
        """The turns of a loop, with time between them.

        Before each, commands are handled; now and then the time is noted, and what other machines have done taken over.
        """
        while True:
            handle_commands(self._scheduler)
            if time.monotonic() >= self._next:
                self._next = time.monotonic() + SHARED_INTERVAL
                self.note_time()
                self._scheduler.study.sync()
            yield
            self.wait(INTERVAL)

    def note_time(self) -> None:
        """Note for how long the search has run, and had when another machine ended a trial."""
        before, self._done = self._done, self._done_elsewhere()
        spent = self._scheduler.spent
        at_end = {} if self._done == before else {"spent_at_end": spent}
        self._scheduler.study.database.update(spent=spent, **at_end)

    def _done_elsewhere(self) -> int:
        """The number of trials that other machines have done."""
        return trials_done(trial for trial in self._scheduler.study.trials.values() if trial.machine)
