"""Tries and applies cures for the Advice screen, in threads."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App
from textual.screen import Screen

from accel_engine.advice import Cure
from accel_engine.errors import AccelError
from accel_tui.formatting.advice import options_text
from accel_tui.run_state.cure_trials import CureActions, CureProgress, CureResult, Trial
from accel_tui.screens.question_screen import Answer, QuestionScreen

APPLY = Answer("apply", "Apply", "a")
CANCEL = Answer("cancel", "Cancel", "escape")

LIVE = (
    "If the engine can change this while it trains, it does so now. Else the run saves a checkpoint, stops, and "
    "continues from there with the changed plan. Its steps, curves and history are kept."
)
"""What applying a cure to a live run does."""

ENDED = "The run continues from its last checkpoint with the changed plan. Its steps, curves and history are kept."
"""What applying a cure to an ended run does."""


class CureRunner:
    """Tries one cure at a time, and applies cures after a question.

    Args:
        screen: Asks the questions, runs the threads, and shows what was done.
        directory: The run's directory.
        cures: Tries and applies cures.
        trials: The trials so far; changed here.
        on_change: Called when a trial or its progress has changed.
        on_applied: Called when a cure was applied.
    """

    def __init__(
        self,
        screen: Screen[Any],
        directory: Path,
        cures: CureActions,
        trials: dict[str, Trial],
        on_change: Callable[[], object],
        on_applied: Callable[[], object],
    ) -> None:
        self._screen = screen
        self._directory = directory
        self._cures = cures
        self._on_change = on_change
        self._on_applied = on_applied
        self._should_stop = threading.Event()
        self._is_applying = False
        self._is_closed = False
        self.trials = trials

    @property
    def is_trying(self) -> bool:
        """Whether a trial is in progress."""
        return any(trial.is_running for trial in self.trials.values())

    @property
    def is_busy(self) -> bool:
        """Whether a cure is being tried or applied."""
        return self.is_trying or self._is_applying

    def try_cure(self, cure: Cure) -> None:
        """Try a cure in a thread, unless another one is tried."""
        if self.is_busy:
            return
        self._should_stop = threading.Event()  # a stopped trial may still be ending
        key = options_text(cure.changes)
        self._set(key, Trial())
        work = partial(self._try, cure, key, self._should_stop)
        self._screen.run_worker(work, thread=True, exit_on_error=False, group="try", description=key)

    def stop(self) -> bool:
        """Stop a trial in progress; whether there was one."""
        was_trying = self.is_trying and not self._should_stop.is_set()
        self._should_stop.set()
        return was_trying

    def close(self) -> None:
        """Stop a trial in progress, and forget it."""
        self.stop()
        self._is_closed = True
        for key in [key for key, trial in self.trials.items() if trial.is_running]:
            del self.trials[key]

    def apply(self, cure: Cure, *, is_live: bool) -> None:
        """Ask, then apply a cure in a thread."""
        options, app = options_text(cure.changes), self._screen.app

        def apply(answer: str | None) -> None:
            if answer == APPLY.id:
                self._is_applying = True
                self._on_change()
                work = partial(self._apply, cure, app)
                # of the app: it ends even if the screen is left
                app.run_worker(work, thread=True, exit_on_error=False, group="apply", description=options)
                app.notify(options, title="Applying", timeout=3)

        question = QuestionScreen(f"Apply {options} to the run?", LIVE if is_live else ENDED, (APPLY, CANCEL))
        app.push_screen(question, apply)

    def _try(self, cure: Cure, key: str, should_stop: threading.Event) -> None:
        def progress(reached: CureProgress) -> None:
            if not should_stop.is_set():
                self._screen.call_later(self._set, key, Trial(progress=reached))

        try:
            found: CureResult = self._cures.try_cure(
                self._directory, cure.changes, progress, should_stop=should_stop.is_set
            )
        except AccelError as error:
            problem = "stopped" if should_stop.is_set() else str(error)
            self._screen.call_later(self._set, key, Trial(problem=problem))
        except Exception as error:
            self._screen.call_later(self._set, key, Trial(problem=f"{type(error).__name__}: {error}"))
            raise
        else:
            self._screen.call_later(self._set, key, Trial(result=found))

    def _apply(self, cure: Cure, app: App[Any]) -> None:
        problem = done = ""
        try:
            done = self._cures.apply_cure(self._directory, cure.changes)
        except AccelError as error:
            problem = str(error)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise
        finally:
            app.call_later(self._take_applied, app, done, problem)

    def _take_applied(self, app: App[Any], done: str, problem: str) -> None:
        self._is_applying = False
        if problem:
            app.notify(problem, title="Not applied", severity="error", markup=False)
        else:
            app.notify(done, title="Applied", markup=False)
        if not self._is_closed:
            self._on_change()
            self._on_applied()

    def _set(self, key: str, trial: Trial) -> None:
        if not self._is_closed:
            self.trials[key] = trial
            self._on_change()
