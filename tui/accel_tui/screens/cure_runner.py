"""Tries and applies cures for the Advice screen, in threads."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from accel_engine.advice import Cure, Finding
from accel_engine.errors import AccelError
from accel_engine.run import RunInfo
from accel_tui.formatting.advice import options_text
from accel_tui.run_state.cure_trials import AdviceNotes, Application, CureActions, Trial
from accel_tui.screens.apply_question import APPLY, apply_question

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.advice.cures.cure_trial import CureProgress


class CureRunner:
    """Tries or applies one cure at a time; applies it after a question.

    A trial ends with the screen. What is applied goes on without it, and ends with the app.

    Args:
        screen: Asks the questions, and shows what was done.
        directory: The run's directory.
        cures: Tries and applies cures.
        notes: The trials and what was applied so far; changed here.
        on_applied: Called when a cure was applied.
    """

    def __init__(
        self,
        screen: Screen[Any],
        directory: Path,
        cures: CureActions,
        notes: AdviceNotes,
        on_applied: Callable[[], object],
    ) -> None:
        self._screen = screen
        self._app = screen.app
        self._directory = directory
        self._cures = cures
        self._notes = notes
        self._on_applied = on_applied
        self._should_stop = threading.Event()
        self._is_closed = False

    @property
    def is_trying(self) -> bool:
        """Whether a trial is in progress."""
        return any(trial.is_running for trial in self._notes.trials.values())

    @property
    def is_busy(self) -> bool:
        """Whether a cure is being tried or applied."""
        return self.is_trying or any(each.is_running for each in self._notes.applied.values())

    def try_cure(self, finding: Finding, cure: Cure) -> None:
        """Try a cure of a finding in a thread, unless another one is tried or applied."""
        if self.is_busy:
            return
        self._should_stop = threading.Event()  # a stopped trial may still be ending
        key = options_text(cure.changes)
        self._set_trial(key, Trial())
        work = partial(self._try, finding, cure, key, self._should_stop)
        self._app.run_worker(work, thread=True, exit_on_error=False, group="try", description=key)

    @property
    def is_stoppable(self) -> bool:
        """Whether a trial is in progress that is not being stopped."""
        return self.is_trying and not self._should_stop.is_set()

    def stop(self) -> None:
        """Stop a trial in progress."""
        self._should_stop.set()

    def close(self) -> None:
        """Stop a trial in progress, and forget it: the screen is closed."""
        self.stop()
        self._is_closed = True
        for key in [key for key, trial in self._notes.trials.items() if trial.is_running]:
            del self._notes.trials[key]

    def apply(self, finding: Finding, cure: Cure, info: RunInfo) -> None:
        """Ask, then apply a cure of a finding in a thread."""

        def apply(answer: str | None) -> None:
            if answer == APPLY.id and not self.is_busy:
                key = options_text(cure.changes)
                self._set_applied(key, Application(is_running=True))
                work = partial(self._apply, finding, cure, key)
                self._app.run_worker(work, thread=True, exit_on_error=False, group="apply", description=key)

        self._app.push_screen(apply_question(info, cure.changes), apply)

    def _try(self, finding: Finding, cure: Cure, key: str, should_stop: threading.Event) -> None:
        def progress(reached: "CureProgress") -> None:
            if not should_stop.is_set():
                self._app.call_later(self._set_trial, key, Trial(progress=reached))

        def is_stopped() -> bool:
            return should_stop.is_set() or not self._app.is_running

        trial = Trial(problem="it ended unexpectedly")
        try:
            found = self._cures.try_cure(self._directory, finding, cure.changes, progress, should_stop=is_stopped)
            trial = Trial(result=found)
        except AccelError as error:
            trial = Trial(problem="stopped" if should_stop.is_set() else str(error))
        finally:  # other exceptions are shown by the app
            self._app.call_later(self._set_trial, key, trial)

    def _apply(self, finding: Finding, cure: Cure, key: str) -> None:
        def progress(text: str) -> None:
            self._app.call_later(self._set_applied, key, Application(text, is_running=True))

        applied = Application(problem="it ended unexpectedly")
        try:
            done = self._cures.apply_cure(
                self._directory, finding, cure.changes, progress, should_stop=lambda: not self._app.is_running
            )
            applied = Application(done)
        except AccelError as error:
            applied = Application(problem=str(error))
        finally:  # see _try
            self._app.call_later(self._end_applying, key, applied)

    def _end_applying(self, key: str, applied: Application) -> None:
        self._set_applied(key, applied)
        if not self._is_closed:
            self._on_applied()
        elif applied.problem:
            self._app.notify(applied.problem, title="Not applied", severity="error", markup=False)
        else:
            self._app.notify(applied.text, title="Applied", markup=False)

    def _set_applied(self, key: str, applied: Application) -> None:
        self._notes.applied[key] = applied
        self._notes.on_change()

    def _set_trial(self, key: str, trial: Trial) -> None:
        if not self._is_closed:
            self._notes.trials[key] = trial
            self._notes.on_change()
