"""Notifications of a run's notices and its end, on the screen and through the terminal."""

from collections.abc import Iterable

from textual.screen import Screen

from accel_engine.events import CommandAnswered, Event, Outcome, Recovered, Warned
from accel_tui.formatting.runs import how_lost
from accel_tui.run_state.state import RunState
from accel_tui.terminal.notifications import Notifier, is_notable_end
from accel_tui.widgets.run.run_outcome import results


def notify_notices(screen: Screen[None], notices: Iterable[Event]) -> None:
    """Notify of warnings, and of answers to commands."""
    for notice in notices:
        match notice:
            case CommandAnswered(obeyed=True):
                screen.notify(notice.answer, markup=False, timeout=3)
            case CommandAnswered():
                answer = f"{notice.command.replace('_', ' ')}: {notice.answer}"
                screen.notify(answer, severity="error", markup=False, timeout=3)
            case Warned(severity="information"):
                pass  # it is in the list of notices
            case Recovered():
                text = f"{notice.reason}: {notice.action}, from step {notice.step:,}"
                screen.notify(text, severity="warning", markup=False, timeout=10)
            case Warned():
                screen.notify(notice.message, severity="warning", markup=False, timeout=10)


def notify_end(screen: Screen[None], notifier: Notifier, state: RunState) -> None:
    """Notify that a run has ended."""
    failed = state.ended is None or state.ended.outcome is Outcome.FAILED
    if state.ended is None:
        title, words = "Run lost", how_lost(state.info)
    else:
        what = "Script" if state.is_launched else "Training"
        title = f"{what} {state.ended.outcome}"
        words = state.ended.reason if failed else results(state.ended.metrics)
    if is_notable_end(state):
        notifier.ended(title, " · ".join(filter(None, (state.info.title if state.info else "", words))))
    if screen.app.screen is not screen:  # else the outcome is visible on this screen
        screen.notify(words, title=title, severity="error" if failed else "information", markup=False)
