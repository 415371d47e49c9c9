"""How a run ended, and what can be done about it."""

from collections.abc import Mapping

from textual.content import Content
from textual.reactive import reactive

from accel_engine.events import Outcome
from accel_tui.formatting import figures, units
from accel_tui.formatting.metrics import ranges
from accel_tui.run.hardware import host_memory_used
from accel_tui.run.state import RunState
from accel_tui.widgets.run.run_text import RunText

_VALIDATION = "validation_"

_FULL = 0.9
"""Share of a machine's memory in use from which on it may well have been the cause that a process ended."""

_STYLES = {Outcome.FINISHED: "-finished", Outcome.STOPPED: "-stopped", Outcome.FAILED: "-failed"}


class RunOutcome(RunText):
    """The end of a run: outcome, final metrics, reason and hint. Hidden while the run goes on."""

    DEFAULT_CSS = """
    RunOutcome {
        display: none;
        height: auto;
        max-height: 10;
        padding: 0 1;
        margin: 0 1;
        border-left: outer $success;
        background: $success 12%;
        &.-stopped { border-left: outer $warning; background: $warning 12%; }
        &.-failed, &.-lost { border-left: outer $error; background: $error 12%; }
    }
    """

    problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why the run cannot be read."""

    def watch_problem(self) -> None:
        """Say why the run cannot be read."""
        self.tell()

    def on_show(self) -> None:
        """Say what is known by now, and take the room for it once more after the layout that is under way."""
        super().on_show()
        self.call_after_refresh(self.refresh, layout=True)

    def tell(self) -> None:
        """Say how the run ended, in the colour of its outcome."""
        if not (self.state.over or self.problem or self.display):
            return
        ended = self.state.ended if self.state.over else None
        self.display = self.state.over or bool(self.problem)
        for outcome, name in _STYLES.items():
            self.set_class(ended is not None and ended.outcome is outcome, name)
        self.set_class(self.state.lost or bool(self.problem), "-lost")
        super().tell()

    def words(self, state: RunState) -> Content:
        """What became of the run, in two or three lines."""
        if self.problem:
            return Content(self.problem)
        if state.lost:
            return _lost(state)
        if state.ended is None:
            return Content("")
        ended = state.ended
        head = f"{ended.outcome.capitalize()} after {ended.steps:,} steps"
        if ended.epochs:
            head += f" and {ended.epochs:,} epoch{'s' if ended.epochs > 1 else ''}"
        speeds = [f"{figures.compact(ended.steps_per_second)} steps/s"] if ended.steps_per_second else []
        speeds += filter(None, [units.speed(ended.flops_per_second, ended.mfu)])
        took = figures.time_taken("in", ended.seconds, state.worked, state.resumed_at)
        lines = [Content.assemble((head, "bold"), ", ".join((took, *speeds)))]
        if ended.reason:
            lines.append(Content(ended.reason))
        if ended.hint:
            lines.append(Content.styled(ended.hint, "bold"))
        if ended.metrics:
            lines.append(Content(results(ended.metrics)))
        return Content("\n").join(lines)


def results(metrics: Mapping[str, float]) -> str:
    """Means in a line: ``loss 0.0313, accuracy 0.9911; validation loss 0.0520, accuracy 0.9861``."""
    words = {name: " to ".join(map(figures.metric, values)) for name, values in ranges(metrics)}
    training = [name for name in words if not name.startswith(_VALIDATION)]
    validation = [name for name in words if name.startswith(_VALIDATION)]
    parts = [
        word + ", ".join(f"{_name(name)} {words[name]}" for name in names)
        for word, names in (("", training), ("validation ", validation))
        if names
    ]
    return "; ".join(parts)


def _name(metric: str) -> str:
    return metric.removeprefix(_VALIDATION).replace("_", " ")


def _lost(state: RunState) -> Content:
    full = host_memory_used(state)
    cause = (
        f"\nThe machine's memory was {full:.0%} full at its last reading: the system may have ended it for that. "
        "Smaller batches take less."
        if full is not None and full >= _FULL
        else ""
    )
    if state.info and state.info.script:
        return Content.assemble(
            (f"Lost: the script ended without a word, at step {state.step:,}", "bold"),
            cause,
            f"\nIt alone knows how to go on: start it again ({state.info.script}).",
        )
    saved = state.checkpoint
    rest = (
        f"R goes on from the checkpoint at step {saved.step:,}."
        if saved
        else "There is no checkpoint yet: R starts it over."
    )
    return Content.assemble(
        (f"Lost: the training process ended without a word, at step {state.step:,}", "bold"),
        cause,
        f"\n{rest} What it said last is in the log (l).",
    )
