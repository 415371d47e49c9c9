"""The phase and progress of a run in a line."""

from textual.reactive import reactive

from accel_engine.events import Outcome, Phase
from accel_engine.run import Status
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.formatting.runs import part_title
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_outcome import is_no_better
from accel_tui.widgets.run.run_view import RunLine
from accel_tui.widgets.styled_text import TextSpan, length

ENDS = {
    Outcome.FINISHED: ("✓", "$success"),
    Outcome.STOPPED: ("■", "$warning"),
    Outcome.FAILED: ("✗", "$error"),
}
"""The sign and the style of each outcome."""

_APART = 3  # minimum gap in cells
_SHORT = 2.0  # seconds; the duration of a shorter phase is not shown


class PhaseLine(RunLine):
    """The phase at the left; epoch, step, rates and MFU at the right."""

    pending_commands: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """Commands that the engine has not answered yet."""

    problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why the run cannot be read; the outcome tells it."""

    def watch_pending_commands(self) -> None:
        self.update_view()

    def watch_problem(self) -> None:
        self.update_view()

    def spans(self, state: RunState) -> list[TextSpan]:
        """The phase, and as many of the figures as fit."""
        is_unknown = self.problem and state.info is None
        left = [("✗ cannot be read", "bold $error")] if is_unknown else phase(state, state.now)
        if self.pending_commands:
            left.append((f"  requested: {', '.join(self.pending_commands).replace('_', ' ')}", "$warning"))
        pairs, available = phase_progress(state), self.width - length(left)
        while pairs and (gap := available - sum(map(length, pairs)) - _APART * (len(pairs) - 1)) < _APART:
            pairs.pop()
        return [
            *left,
            *(piece for index, pair in enumerate(pairs) for piece in ((" " * (_APART if index else gap), ""), *pair)),
        ]


def phase(state: RunState, now: float, *, brief: bool = False) -> list[TextSpan]:
    """The phase and its duration, or the outcome of an ended run.

    Args:
        state: The run's state.
        now: Seconds since the Unix epoch.
        brief: Whether to leave out durations and details.
    """
    if state.info is None:
        return [("opening…", "$text-muted")]
    if state.lost:
        return [("✗ lost", "bold $error")]
    if state.ended and state.has_ended:
        sign, style = ENDS[state.ended.outcome]
        if state.ended.outcome is Outcome.FINISHED and is_no_better(state):
            style = "$warning"
        took = numbers.time_taken("after", state.ended.seconds, state.earlier_seconds, state.resumed_at).lstrip(", ")
        outcome = "measured" if state.info.bench else state.ended.outcome
        return [
            (f"{sign} {outcome}", f"bold {style}"),
            ("" if brief else f"  {took}", "$text-muted"),
        ]
    if state.info.waiting:
        return [(f"‖ {state.info.waiting.waiting}", "bold $warning")]
    if state.is_queued:
        place = f" in {state.info.place.place}" if state.info.place else ""
        return [(f"○ queued{place}", "bold $primary"), ("" if brief else f"  {state.waits}", "$text-muted")]
    if state.phase is None or state.info.status is Status.STARTING:
        return [("● starting", "bold $primary")]
    current = state.phase.phase
    sign, style = {
        Phase.PAUSED: ("‖", "$warning"),
        Phase.SCRIPT: ("▶", "$primary"),
    }.get(current, ("●", "$primary"))
    if brief:
        return [(f"{sign} {current}", f"bold {style}")]
    detail = part_title(state.part) if state.part else state.phase.detail
    if current is Phase.SCRIPT and not detail:
        detail = "no fit is running"
    lasted = now - state.phase.time
    # The elapsed time of training is in the progress line.
    shows_duration = lasted > _SHORT and current is not Phase.TRAINING
    return [
        (f"{sign} {current}", f"bold {style}"),
        (f" {numbers.duration(lasted)}" if shows_duration else "", ""),
        (f"  {detail}" if detail else "", "$text-muted"),
    ]


def phase_progress(state: RunState) -> list[list[TextSpan]]:
    """Epoch, step, rates and MFU, the most important first."""
    pairs = []
    if state.info and state.info.bench:
        return [_pair(numbers.counted(state.step, "batch size"), "", figure_first=True)]
    epoch = state.ended.epochs if state.ended and state.has_ended and not state.parts else state.current_epoch
    if state.epochs and epoch is not None:
        pairs.append(_pair("epoch", f"{epoch:,}/{state.epochs:,}"))
    elif ended := _epochs_ended(state):
        pairs.append(_pair("epochs", f"{ended:,}"))
    if state.total_steps:
        pairs.append(_pair("step", f"{state.step:,}/{state.total_steps:,}"))
    elif state.step:
        pairs.append(_pair("step", f"{state.step:,}"))
    if rate := state.steps_per_second:
        pairs.append(_pair(numbers.compact(rate), "steps/s", figure_first=True))
        if state.built and state.built.global_batch:
            pairs.append(_pair(numbers.compact(rate * state.built.global_batch), "examples/s", figure_first=True))
    if (reached := state.flops_per_second) is not None:
        pairs.append(_pair(*f"{numbers.flops(reached)}/s".split(), figure_first=True))
    if (share := state.mfu) is not None:
        pairs.append(_pair("MFU", percent(share)))
    return pairs


def _epochs_ended(state: RunState) -> int:
    """Epochs that have ended; in a script, of the part that is being recorded, and between parts of all parts."""
    return state.epoch.epoch - (state.before_part[1] if state.part else 0) if state.epoch else 0


def _pair(first: str, second: str, *, figure_first: bool = False) -> list[TextSpan]:
    figure, quiet = "", "$text-muted"
    styles = (figure, quiet) if figure_first else (quiet, figure)
    return [(f"{first} ", styles[0]), (second, styles[1])]
