"""The outcome of an ended run, with hints; and notifications of notices and of the end."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist

from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen

from accel_engine.data.data_options import OF_CLASSES
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
from accel_tui.run_state.run_devices import host_memory_used
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


@dataclass(frozen=True, slots=True)
class _Reached:
    """The metric of a run beside a constant prediction's."""

    metric: str
    """The metric of validations: the one that counts, or else one that a constant prediction has."""
    value: float
    """Its value at the best step."""
    baseline: float
    """What the constant prediction reaches."""
    validations: int
    """Of how many validations it is the best."""


def _compared(state: RunState) -> _Reached | None:
    """Compare a run with a constant prediction; ``None`` if either is unknown."""
    if state.best is None or state.validated is None or not state.monitor.startswith(VALIDATION_PREFIX):
        return None
    baseline, counts = state.validated.baseline, state.monitor.removeprefix(VALIDATION_PREFIX)
    for name in sorted(baseline, key=lambda each: each != counts):
        points = dict(state.validation.get(name, ()))
        if (value := points.get(state.best[0])) is not None:
            return _Reached(name, value, baseline[name], len(points))
    return None


def is_no_better(state: RunState) -> bool:
    """Whether the best validation is no better than a constant prediction, or not by more than chance."""
    if (found := _compared(state)) is None:
        return False
    name = VALIDATION_PREFIX + found.metric
    mode = state.info.plan_values.get("monitor_mode") if state.info and name == state.monitor else None
    if (lower := is_better_lower(name, mode)) is None:
        return False
    return not is_improvement(found.value, found.baseline, lower=lower, min_delta=_chance(state, found))


def _chance(state: RunState, found: _Reached) -> float:
    """By how much the best share of right predictions of several validations is above its mean by chance.

    Two standard errors for one validation. For several, as many as all of them stay below with the same probability
    (Bonferroni's bound, so that validations need not be independent). 0 for other metrics, and for several answers for
    an example, such as a mask's pixels: how they depend on each other is unknown.
    """
    examples = state.built.validation_examples if state.built and state.built.task in ("", *OF_CLASSES) else None
    if not examples or not found.metric.endswith("accuracy") or not 0 < found.baseline < 1:
        return 0.0
    errors = -NormalDist().inv_cdf(NormalDist().cdf(-2) / found.validations)
    return errors * math.sqrt(found.baseline * (1 - found.baseline) / examples)


def _reached(state: RunState, width: int) -> Content | None:
    """The best value of the metric that counts beside the baseline; ``None`` if either is unknown."""
    found = _compared(state)
    if state.best is None or found is None or state.validated is None:
        return None
    step, value = state.best
    is_other = VALIDATION_PREFIX + found.metric != state.monitor
    other = f", with {short_metric_name(found.metric)} {numbers.metric(found.value)}" if is_other else ""
    best, short = (
        f"Best {name}: {numbers.metric(value)} at step {step:,}{other}"
        for name in (state.monitor.replace("_", " "), short_metric_name(state.monitor))
    )
    constant = f"{printable_line(state.validated.baseline_name)} reaches {numbers.metric(found.baseline)}"
    if is_no_better(state):
        verdict = "may be chance" if found.value > found.baseline and _chance(state, found) else "is no better"
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
