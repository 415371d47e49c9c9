"""The outcome of an ended run, with hints; and notifications of notices and of the end."""

import math
from collections.abc import Iterable, Mapping

from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen

from accel_engine.events import CommandAnswered, Event, Outcome, Recovered, RunEnded, Warned
from accel_engine.plan.monitor import is_better_lower
from accel_engine.run import RunInfo
from accel_engine.run.history.history import is_improvement
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.formatting.bench_figures import described
from accel_tui.formatting.runs import DIRECTORY_LOST, lost_reason, metric_ranges
from accel_tui.run_list.groups import short_metric_name
from accel_tui.run_state.hardware import host_memory_used
from accel_tui.run_state.state import RunState
from accel_tui.terminal.notifications import Notifier, is_notable_end
from accel_tui.widgets.run.run_view import RunText

_FULL = 0.9
"""Share of used memory above which it may have been the reason that the process was killed."""

_DIRECTORY_LOST = f"{DIRECTORY_LOST.capitalize()}: it cannot be continued."

_STYLES = {Outcome.FINISHED: "-finished", Outcome.STOPPED: "-stopped", Outcome.FAILED: "-failed"}


class RunOutcome(RunText):
    """Outcome, final metrics, reason and hint of an ended run; hidden while it is live."""

    DEFAULT_CSS = """
    RunOutcome {
        display: none;
        height: auto;
        max-height: 10;
        padding: 0 1;
        margin: 0 1;
        border-left: outer $success;
        background: $success 12%;
        &.-stopped, &.-no-better { border-left: outer $warning; background: $warning 12%; }
        &.-failed, &.-lost { border-left: outer $error; background: $error 12%; }
    }
    """

    problem: reactive[str] = reactive("", repaint=False, init=False)
    """Why the run cannot be read."""

    def on_show(self) -> None:
        """Update, and request the final height after the current layout."""
        super().on_show()
        self.call_after_refresh(self.refresh, layout=True)

    def update_view(self) -> None:
        """Show the outcome, in its colour."""
        if not (self.state.has_ended or self.problem or self.display):
            return
        ended = self.state.ended if self.state.has_ended else None
        self.display = self.state.has_ended or bool(self.problem)
        for outcome, name in _STYLES.items():
            self.set_class(ended is not None and ended.outcome is outcome, name)
        self.set_class(self.state.lost or bool(self.problem), "-lost")
        self.set_class(
            ended is not None and ended.outcome is Outcome.FINISHED and is_no_better(self.state), "-no-better"
        )
        super().update_view()

    watch_problem = update_view

    def build(self, state: RunState) -> Content:
        """The outcome in a few lines."""
        return Content(self.problem) if self.problem else outcome_text(state, self.width)


def outcome_text(state: RunState, width: int = 0) -> Content:
    """The outcome of an ended run in a few lines; empty while it is live.

    Args:
        state: The run.
        width: Cells of a line, for which numbers have shorter names; 0 if there is room for all.
    """
    if state.lost:
        return _lost(state)
    if state.ended is None:
        return Content("")
    ended = state.ended
    if state.info and state.info.bench:
        return _bench(state.info, ended)
    head = f"{ended.outcome.capitalize()} after {numbers.counted(ended.steps, 'step')}"
    if ended.epochs:
        head += f" and {numbers.counted(ended.epochs, 'epoch')}"
    speeds = [f"{numbers.compact(ended.steps_per_second)} steps/s"] if ended.steps_per_second else []
    speeds += filter(None, [numbers.speed(ended.flops_per_second, ended.mfu)])
    took = numbers.time_taken("in", ended.seconds, state.earlier_seconds, state.resumed_at)
    lines = [Content.assemble((head, "bold"), ", ".join((took, *speeds)))]
    if ended.reason:
        failed = ended.outcome is Outcome.FAILED
        lines.append(Content(ended.reason if failed else ended.reason[:1].upper() + ended.reason[1:]))
    if ended.hint:
        lines.append(Content.styled(ended.hint, "bold"))
    if ended.metrics:
        kind = "Last epoch" if ended.epochs else "Last values"
        lines.append(_fitting(width, *(Content(results(ended.metrics, kind, short=short)) for short in (False, True))))
    if reached := _reached(state, width):
        lines.append(reached)
    if state.info and state.is_launched and ended.outcome is Outcome.FAILED:
        lines.append(Content(_again(state.info.script)))
    if state.model:
        best = f", of its best step, {ended.model_step:,}" if ended.model_step else ""
        lines.append(Content.assemble((f"Trained model{best}: ", "$text-muted"), str(state.model)))
    if state.is_directory_lost and not ended.hint:
        lines.append(Content(_DIRECTORY_LOST))
    return Content("\n").join(lines)


def _fitting(width: int, *texts: Content) -> Content:
    """The first text that fits a line, or else the last; the first without a width."""
    return next((each for each in texts if not width or each.cell_length <= width), texts[-1])


def is_no_better(state: RunState) -> bool:
    """Whether the best value of the metric that counts is no better than what a constant prediction reaches."""
    mode = state.info.plan_values.get("monitor_mode") if state.info else None
    baseline, lower = _baseline(state), is_better_lower(state.monitor, mode)
    if state.best is None or baseline is None or lower is None:
        return False
    return not is_improvement(state.best[1], baseline, lower=lower, min_delta=_chance(state, baseline))


def _chance(state: RunState, baseline: float) -> float:
    """How much a share of right predictions differs by chance: two standard errors; 0 for other metrics."""
    examples = state.built.validation_examples if state.built else None
    if not examples or not state.monitor.endswith("accuracy") or not 0 < baseline < 1:
        return 0.0
    return 2 * math.sqrt(baseline * (1 - baseline) / examples)


def _baseline(state: RunState) -> float | None:
    """What a constant prediction reaches in the metric that counts; ``None`` if unknown."""
    name = state.monitor.removeprefix(VALIDATION_PREFIX)
    return (
        state.validated.baseline.get(name) if state.validated and state.monitor.startswith(VALIDATION_PREFIX) else None
    )


def _reached(state: RunState, width: int) -> Content | None:
    """The best value of the metric that counts beside the baseline; ``None`` if either is unknown."""
    baseline = _baseline(state)
    if state.best is None or baseline is None or state.validated is None:
        return None
    step, value = state.best
    best = f"Best {state.monitor.replace('_', ' ')}: {numbers.metric(value)} at step {step:,}"
    short = f"Best {short_metric_name(state.monitor)}: {numbers.metric(value)} at step {step:,}"
    constant = f"{printable_line(state.validated.baseline_name)} reaches {numbers.metric(baseline)}"
    if is_no_better(state):
        verdict = "may be chance" if value > baseline and _chance(state, baseline) else "is no better"
        texts = [Content.styled(f"{each}, which {verdict}: {constant}", "bold") for each in (best, short)]
    else:
        texts = [Content.assemble(each, (f"; {constant}", "$text-muted")) for each in (best, short)]
    return _fitting(width, *texts)


def _bench(info: RunInfo, ended: RunEnded) -> Content:
    """How long a bench took, and the figures of its best batch size."""
    target = info.plan_values.get("target_latency")
    within = f" within {numbers.latency(target)} at p99" if isinstance(target, float) else ""
    what = f"The highest throughput{within}"
    if ended.reason:
        what = f"{ended.reason[:1].upper()}{ended.reason[1:]}. The shortest latency"
    head = f"Measured {numbers.counted(ended.steps, 'batch size')} in {numbers.duration(ended.seconds)}"
    return Content.assemble((head, "bold"), f"\n{what}: {described(ended.metrics, info)}")


def results(metrics: Mapping[str, float], kind: str = "Last epoch", *, short: bool = False) -> str:
    """Metrics in a line: ``Last epoch: loss 0.0313; validation: loss 0.0520, accuracy 0.9861``; or ``acc``."""
    values = {name: " to ".join(map(numbers.metric, span)) for name, span in metric_ranges(metrics)}
    training = [name for name in values if not name.startswith(VALIDATION_PREFIX)]
    validation = [name for name in values if name.startswith(VALIDATION_PREFIX)]
    parts = [
        f"{word}: " + ", ".join(f"{_name(name, short=short)} {values[name]}" for name in names)
        for word, names in ((kind, training), ("val" if short else "validation", validation))
        if names
    ]
    line = "; ".join(parts)
    return line[:1].upper() + line[1:]


def _name(metric: str, *, short: bool) -> str:
    name = metric.removeprefix(VALIDATION_PREFIX)
    return short_metric_name(name) if short else name.replace("_", " ")


def _again(command: str) -> str:
    """Where the output of a script is, and how to start it again: a line that can be copied."""
    return f"Its output is in the log (l). Run it again:\n{command}"


def _lost(state: RunState) -> Content:
    full = host_memory_used(state)
    cause = (
        f"\nThe machine's memory was {percent(full, 0)} full at the last reading: the system may have killed the "
        "process. Use a smaller batch size."
        if full is not None and full >= _FULL and not (state.info and state.info.memory_loss)
        else ""
    )
    head = f"Lost: {lost_reason(state.info)} at step {state.step:,}", "bold"
    if state.is_directory_lost:
        return Content.assemble(head, cause, "\n", _DIRECTORY_LOST)
    if state.info and state.info.script:
        script = state.info.script
        again = _again(script) if state.is_launched else f"To continue, run the script again: {script}"
        return Content.assemble(head, cause, f"\n{again}")
    saved = state.checkpoint
    rest = (
        f"R continues from the checkpoint at step {saved.step:,}."
        if saved
        else "There is no checkpoint to continue from."
    )
    return Content.assemble(head, cause, f"\n{rest} Its last output is in the log (l).")


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
        title, words = "Run lost", lost_reason(state.info)
    else:
        what = "Script" if state.is_launched else "Training"
        title = f"{what} {state.ended.outcome}"
        words = state.ended.reason if failed else results(state.ended.metrics)
    if is_notable_end(state):
        notifier.ended(title, " · ".join(filter(None, (state.info.title if state.info else "", words))))
    if screen.app.screen is not screen:  # else the outcome is visible on this screen
        screen.notify(words, title=title, severity="error" if failed else "information", markup=False)
