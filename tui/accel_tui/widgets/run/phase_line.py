"""What the run is busy with, and how far and how fast it is."""

from textual.reactive import reactive

from accel_engine.events import Outcome, Phase
from accel_engine.run import Status
from accel_tui.formatting import figures, units
from accel_tui.run.state import RunState
from accel_tui.widgets.run.run_line import RunLine
from accel_tui.widgets.styled_text import Piece, length

_ENDS = {
    Outcome.FINISHED: ("✓", "$success"),
    Outcome.STOPPED: ("■", "$warning"),
    Outcome.FAILED: ("✗", "$error"),
}

_APART = 3  # cells between two figures, at least
_SHORT = 2.0  # seconds of a phase that nobody wonders about


class PhaseLine(RunLine):
    """One line: the phase at the left; epoch, step, rates and the use of the devices at the right."""

    asked: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """Commands that the engine has not answered yet."""

    def watch_asked(self) -> None:
        """Say what was asked for."""
        self.tell()

    def pieces(self, state: RunState) -> list[Piece]:
        """The phase now, and as many of the figures as there is room for."""
        left = phase(state, state.now)
        if self.asked:
            left.append((f"  asked to {', '.join(self.asked).replace('_', ' ')} …", "$warning"))
        pairs, room = progress(state), self.width - length(left)
        while pairs and (gap := room - sum(map(length, pairs)) - _APART * (len(pairs) - 1)) < _APART:
            pairs.pop()
        return [
            *left,
            *(piece for place, pair in enumerate(pairs) for piece in ((" " * (_APART if place else gap), ""), *pair)),
        ]


def phase(state: RunState, now: float, *, brief: bool = False) -> list[Piece]:
    """What the run is busy with, for how long where that is worth saying, or how it ended.

    Args:
        state: The run's.
        now: Seconds since the Unix epoch.
        brief: Whether to leave out how long, and for whom.
    """
    if state.info is None:
        return [("opening …", "$text-muted")]
    if state.lost:
        return [("✗ lost", "bold $error")]
    if state.ended and state.over:
        sign, style = _ENDS[state.ended.outcome]
        took = figures.time_taken("after", state.ended.seconds, state.worked, state.resumed_at).lstrip(", ")
        return [
            (f"{sign} {state.ended.outcome}", f"bold {style}"),
            ("" if brief else f"  {took}", "$text-muted"),
        ]
    if state.phase is None or state.info.status is Status.STARTING:
        return [("● starting", "bold $primary")]
    current = state.phase.phase
    sign, style = {
        Phase.TRAINING: ("●", "$success"),
        Phase.PAUSED: ("‖", "$warning"),
    }.get(current, ("●", "$primary"))
    if brief:
        return [(f"{sign} {current}", f"bold {style}")]
    lasted = now - state.phase.time
    # How long training goes on is in the line below.
    told = lasted > _SHORT and current is not Phase.TRAINING
    return [
        (f"{sign} {current}", f"bold {style}"),
        (f" {figures.duration(lasted)}" if told else "", ""),
        (f"  {state.phase.detail}" if state.phase.detail else "", "$text-muted"),
    ]


def progress(state: RunState) -> list[list[Piece]]:
    """Epoch, step, rates and the use of the devices, the most telling first."""
    pairs = []
    if state.built:
        pairs.append(_pair("epoch", f"{state.current_epoch}/{state.built.epochs}"))
    if state.total_steps:
        pairs.append(_pair("step", f"{state.step:,}/{state.total_steps:,}"))
    elif state.step:
        pairs.append(_pair("step", f"{state.step:,}"))
    if rate := state.rate:
        pairs.append(_pair(figures.compact(rate), "steps/s", figure_first=True))
        if state.built and state.built.global_batch:
            pairs.append(_pair(figures.compact(rate * state.built.global_batch), "examples/s", figure_first=True))
    if (reached := state.flops_per_second) is not None:
        pairs.append(_pair(*f"{units.flops(reached)}/s".split(), figure_first=True))
    if (share := state.mfu) is not None:
        pairs.append(_pair(units.percent(share), "of peak", figure_first=True))
    return pairs


def _pair(first: str, second: str, *, figure_first: bool = False) -> list[Piece]:
    figure, quiet = "", "$text-muted"
    styles = (figure, quiet) if figure_first else (quiet, figure)
    return [(f"{first} ", styles[0]), (second, styles[1])]
