"""Tries, applies and takes back cures for the Advice screen, in threads, which import the engine's modules then."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from accel_engine.advice import Cure, Finding
from accel_engine.errors import AccelError
from accel_engine.plan.changed_plan import options_text
from accel_engine.process.start_run import CONTINUABLE
from accel_engine.run import RunInfo
from accel_tui.formatting.advice import can_continue_with
from accel_tui.run_state.advice_state import AdviceState, AppliedCureState, CureTrialState
from accel_tui.screens.asking import CANCEL, Answer, QuestionScreen, ask_user

if TYPE_CHECKING:  # its imports are slow
    from accel_engine.advice.cures.apply_cure import AppliedCure
    from accel_engine.race.cure_race import CureProgress

APPLY = Answer("apply", "Apply", "a")

_UNDO = ""
"""Stands for taking back, among what is applied."""

_LIVE = (
    "If the engine can change this while it trains, it does so now. Else the run saves a checkpoint, stops, and "
    "continues from there with the changed plan; its steps and curves are kept."
)
_ENDED = "The run continues from its last checkpoint with the changed plan; its steps and curves are kept."
_THEN = "Undo takes it back."


def can_apply(info: RunInfo, changes: Mapping[str, Any]) -> bool:
    """Whether a run can have changes of its plan; else they are for a new run."""
    return can_continue_with(changes) and (info.status.live or info.status in CONTINUABLE)


class CureRunner:
    """Tries, applies or takes back one cure at a time; applies it after a question.

    A trial ends with the screen. Applying continues without it, and ends with the app.

    Args:
        screen: Asks the questions, and shows what was done.
        directory: The run's directory.
        state: The trials and what was applied so far; changed here.
        on_applied: Called when a cure was applied or taken back.
    """

    def __init__(
        self, screen: Screen[Any], directory: Path, state: AdviceState, on_applied: Callable[[], object]
    ) -> None:
        self._screen = screen
        self._app = screen.app
        self._directory = directory
        self._state = state
        self._on_applied = on_applied
        self._should_stop = threading.Event()
        self._is_closed = False

    @property
    def is_trying(self) -> bool:
        """Whether a trial is in progress."""
        return any(trial.is_running for trial in self._state.trials.values())

    @property
    def is_busy(self) -> bool:
        """Whether a cure is being tried, applied or taken back."""
        return self.is_trying or any(each.is_running for each in self._state.applied.values())

    def try_cure(self, finding: Finding, cure: Cure) -> None:
        """Try a cure of a finding in a thread, unless another one is tried or applied."""
        if self.is_busy:
            return
        self._should_stop = threading.Event()  # a stopped trial may still be ending
        key = options_text(cure.changes)
        self._set_trial(key, CureTrialState())
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
        for key in [key for key, trial in self._state.trials.items() if trial.is_running]:
            del self._state.trials[key]

    async def apply(self, finding: Finding, cure: Cure, info: RunInfo) -> None:
        """Ask, then apply a cure of a finding in a thread."""
        if await ask_user(self._screen, _apply_question(info, cure.changes)) == APPLY.id:
            self._start(options_text(cure.changes), partial(self._apply, finding, cure))

    def undo(self) -> None:
        """Take back, in a thread, what was applied last."""
        self._start(_UNDO, self._undo)

    def _try(self, finding: Finding, cure: Cure, key: str, should_stop: threading.Event) -> None:
        from accel_engine.advice.cures import cure_task
        from accel_engine.race import cure_race

        def progress(reached: "CureProgress") -> None:
            if not should_stop.is_set():
                self._app.call_later(self._set_trial, key, CureTrialState(progress=reached))

        def is_stopped() -> bool:
            return should_stop.is_set() or not self._app.is_running

        trial, quantity = CureTrialState(problem="it ended unexpectedly"), cure_task.PURPOSES[finding.category]
        try:
            found = cure_race.try_cure(
                self._directory, cure.changes, progress, should_stop=is_stopped, quantity=quantity
            )
            trial = CureTrialState(result=found)
        except AccelError as error:
            trial = CureTrialState(problem="stopped" if should_stop.is_set() else str(error))
        finally:  # other exceptions are shown by the app
            self._app.call_later(self._set_trial, key, trial)

    def _apply(self, finding: Finding, cure: Cure) -> "AppliedCure":
        from accel_engine.advice.cures import apply_cure

        return apply_cure.apply(self._directory, cure.changes, finding=finding.id)

    def _undo(self) -> "AppliedCure":
        from accel_engine.advice.cures import apply_cure

        return apply_cure.undo(self._directory)

    def _start(self, key: str, work: "Callable[[], AppliedCure]") -> None:
        if not self.is_busy:
            self._set_applied(key, AppliedCureState())
            change = partial(self._change, key, work)
            self._app.run_worker(change, thread=True, exit_on_error=False, group="apply", description=key)

    def _change(self, key: str, work: "Callable[[], AppliedCure]") -> None:
        done, problem = None, "it ended unexpectedly"
        try:
            done = work()
        except AccelError as error:
            problem = str(error)
        finally:  # see _try
            self._app.call_later(self._end_change, key, done, problem)

    def _end_change(self, key: str, done: "AppliedCure | None", problem: str) -> None:
        if done is not None and key == _UNDO:
            self._state.applied.clear()
        self._set_applied(key, AppliedCureState(done.text) if done else AppliedCureState(problem=problem))
        if not self._is_closed:
            self._on_applied()
        if self._is_closed or key == _UNDO:  # no line of a cure shows it
            what = "taken back" if key == _UNDO else "applied"
            if done is None:
                self._app.notify(problem, title=f"Not {what}", severity="error", markup=False)
            else:
                self._app.notify(done.text, title=what.capitalize(), markup=False)

    def _set_applied(self, key: str, applied: AppliedCureState) -> None:
        self._state.applied[key] = applied
        self._state.on_change()

    def _set_trial(self, key: str, trial: CureTrialState) -> None:
        if not self._is_closed:
            self._state.trials[key] = trial
            self._state.on_change()


def _apply_question(info: RunInfo, changes: Mapping[str, Any]) -> QuestionScreen:
    """Ask whether to apply changes to a run, and say what that does; the answer is :data:`APPLY` or another one."""
    return QuestionScreen(
        f"Apply {options_text(changes)} to the run?",
        f"{_LIVE if info.status.live else _ENDED} {_THEN}",
        (APPLY, CANCEL),
    )
