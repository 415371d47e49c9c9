"""The progress bar of a run."""

from accel_engine.events import Outcome
from accel_engine.words import numbers
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_line import RunLine
from accel_tui.widgets.styled_text import TextSpan


class ProgressLine(RunLine):
    """A bar over all epochs, or those of a script's part; percentage, elapsed and remaining time."""

    def spans(self, state: RunState) -> list[TextSpan]:
        """The bar and its figures; an empty bar while the number of steps is unknown, a full one of a finished run."""
        if state.info and state.info.bench:
            return []  # it is stored once it is measured
        share = state.progress if state.progress is not None else float(_has_finished(state))
        is_known = state.progress is not None or not (state.is_launched or state.lost)
        tail = f" {int(share * 100):3}%" if is_known else ""  # never 100% before the last step
        if state.part and is_known:
            tail += f" of part {state.part.started.part}"
        if state.live and (elapsed := state.elapsed(state.now)) is not None:
            tail += f"   {numbers.duration(elapsed)} elapsed"
            if (left := state.remaining) is not None:
                tail += f"   {numbers.duration(left)} left"
            elif state.built and not (state.total_steps or state.is_between_parts):
                tail += "   ETA after the first epoch"
        elif ends_early := _early_end(state):
            share, tail = 1.0, f" {ends_early}"
        width = max(0, self.width - len(tail))
        halves = int(share * width * 2)
        style = "$warning" if state.paused else "$error" if state.lost else "$primary"
        done = "━" * (halves // 2) + "╸" * (halves % 2)
        return [(done, style), ("─" * (width - len(done)), "$foreground 20%"), (tail, "")]


def _has_finished(state: RunState) -> bool:
    return state.has_ended and state.ended is not None and state.ended.outcome is Outcome.FINISHED


def _early_end(state: RunState) -> str:
    """How far a run came that finished before its last step, as by early stopping; empty for any other."""
    ended, built, total = state.ended, state.built, state.total_steps
    if state.is_launched or not (ended and built and total and state.step < total and _has_finished(state)):
        return ""
    if not built.epochs:
        return f"ended early, after {state.step:,} of {numbers.counted(total, 'step')}"
    return f"ended early, after {ended.epochs:,} of {numbers.counted(built.epochs, 'epoch')}"
