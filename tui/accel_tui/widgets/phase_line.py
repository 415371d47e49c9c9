"""What the run is busy with, and how far and how fast it is."""

import time

from textual.content import Content
from textual.reactive import reactive

from accel_engine.events import Outcome, Phase
from accel_engine.run import Status
from accel_tui import figures, units
from accel_tui.state import RunState
from accel_tui.widgets.run_text import RunText, row

_ENDS = {
    Outcome.FINISHED: ("✓", "$success"),
    Outcome.STOPPED: ("■", "$warning"),
    Outcome.FAILED: ("✗", "$error"),
}

_SHORT = 2.0  # seconds of a phase that nobody wonders about


class PhaseLine(RunText):
    """One line: the phase at the left; epoch, step, rates and the use of the devices at the right."""

    DEFAULT_CSS = """
    PhaseLine {
        height: 1;
        padding: 0 1;
    }
    """

    asked: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """Commands that the engine has not answered yet."""

    def on_mount(self) -> None:
        """Let the time go on while nothing else happens."""
        self.set_interval(1.0, self.tell)

    def watch_asked(self) -> None:
        """Say what was asked for."""
        self.tell()

    def words(self, state: RunState) -> Content:
        """The phase now, and as many of the figures as there is room for."""
        left = phase(state, time.time())
        if self.asked:
            left += Content.styled(f"  asked to {', '.join(self.asked).replace('_', ' ')} …", "$warning")
        pairs = progress(state)
        while pairs:
            right = Content("   ").join(pairs)
            if left.cell_length + right.cell_length + 3 <= self.size.width:
                return row(left, right, self.size.width)
            pairs.pop()
        return left


def phase(state: RunState, now: float, *, brief: bool = False) -> Content:
    """What the run is busy with, for how long where that is worth saying, or how it ended.

    Args:
        state: The run's.
        now: Seconds since the Unix epoch.
        brief: Whether to leave out how long, and for whom.
    """
    if state.info is None:
        return Content.styled("opening …", "$text-muted")
    if state.lost:
        return Content.styled("✗ lost", "bold $error")
    if state.ended and state.over:
        sign, style = _ENDS[state.ended.outcome]
        return Content.assemble(
            (f"{sign} {state.ended.outcome}", f"bold {style}"),
            ("" if brief else f"  after {figures.duration(state.ended.seconds)}", "$text-muted"),
        )
    if state.phase is None or state.info.status is Status.STARTING:
        return Content.styled("● starting", "bold $primary")
    current = state.phase.phase
    sign, style = {
        Phase.TRAINING: ("●", "$success"),
        Phase.PAUSED: ("‖", "$warning"),
    }.get(current, ("●", "$primary"))
    if brief:
        return Content.styled(f"{sign} {current}", f"bold {style}")
    seconds = now - state.phase.time
    # How long training goes on is in the line below.
    told = seconds > _SHORT and current is not Phase.TRAINING
    return Content.assemble(
        (f"{sign} {current}", f"bold {style}"),
        f" {figures.duration(seconds)}" if told else "",
        (f"  {state.phase.detail}" if state.phase.detail else "", "$text-muted"),
    )


def progress(state: RunState) -> list[Content]:
    """Epoch, step, rates and the use of the devices, the most telling first."""
    pairs = []
    if state.built:
        pairs.append(_pair("epoch", f"{state.current_epoch}/{state.built.epochs}"))
    if state.total_steps:
        pairs.append(_pair("step", f"{state.step:,}/{state.total_steps:,}"))
    elif state.step:
        pairs.append(_pair("step", f"{state.step:,}"))
    if rate := state.pace.rate:
        pairs.append(_pair(figures.compact(rate), "steps/s", figure_first=True))
        if state.built and state.built.global_batch:
            pairs.append(_pair(figures.compact(rate * state.built.global_batch), "examples/s", figure_first=True))
    if (reached := state.flops_per_second) is not None:
        pairs.append(_pair(*f"{units.flops(reached)}/s".split(), figure_first=True))
    if (share := state.mfu) is not None:
        pairs.append(_pair(units.percent(share), "of peak", figure_first=True))
    return pairs


def _pair(first: str, second: str, *, figure_first: bool = False) -> Content:
    quiet = "$text-muted"
    return Content.assemble((first, "" if figure_first else quiet), " ", (second, quiet if figure_first else ""))
