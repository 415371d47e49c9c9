"""The events of a run with their times: epochs, checkpoints, advice, commands, recoveries."""

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from textual.content import Content
from textual.events import MouseScrollDown, MouseScrollUp
from textual.reactive import reactive

from accel_engine import events
from accel_engine.advice import Finding
from accel_engine.events import Event, Outcome
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.words import numbers
from accel_tui.formatting.runs import plan_change_text
from accel_tui.formatting.text import paragraph_lines
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart.draw_values import BEST
from accel_tui.widgets.run.phase_line import ENDS
from accel_tui.widgets.run.run_view import RunText

SIGN = "⚑"
"""The sign of advice, as in charts."""

_AT = len("00:00:00 ? ")
"""Cells before the words of an event."""

ROUTINE_SECONDS = 1.0
"""Seconds between two updates where only epochs and validations have ended."""


class Happened(NamedTuple):
    """A line of the list."""

    time: float
    sign: str
    style: str
    words: str
    routine: str = ""
    """Kind of an event that comes again and again; of a kind, only the last between two other events is shown."""


class RunEvents(RunText):
    """The latest events, newest first, as many as there is room for; the wheel scrolls."""

    DEFAULT_CSS = "RunEvents { height: 6; }"

    findings: reactive[tuple[Finding, ...]] = reactive((), repaint=False, init=False)
    """Advice on the run."""

    _skipped = 0
    _notable: tuple[object, ...] = ()
    _updated_at = 0.0

    def on_mount(self) -> None:
        self.border_title = "Events"

    def watch_findings(self) -> None:
        self.update_view()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self._scroll(3, event)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self._scroll(-3, event)

    def _scroll(self, by: int, event: MouseScrollDown | MouseScrollUp) -> None:
        event.stop()
        most = len(list(self._lines(self.state))) - self.size.height
        self._skipped = max(0, min(self._skipped + by, most))
        self.update_view()

    def inputs(self, state: RunState) -> tuple[object, ...]:
        """All that the text depends on."""
        notable = state.notice_count, state.happened, state.ended, self.findings, self._skipped, self.size
        now = time.monotonic()
        if self._inputs and notable == self._notable and now - self._updated_at < ROUTINE_SECONDS:
            return self._inputs
        self._notable, self._updated_at = notable, now
        return *notable, state.epoch, state.validated

    def build(self, state: RunState) -> Content:
        """The lines that fit."""
        lines = list(self._lines(state))
        return Content("\n").join(lines[self._skipped : self._skipped + max(self.size.height, 1)])

    def _lines(self, state: RunState) -> Iterator[Content]:
        width = max(self.size.width - _AT, 10)
        for each in happened(state, self.findings):
            at = time.strftime("%H:%M:%S ", time.localtime(each.time))
            first, *others = paragraph_lines(each.words, width)
            yield Content.assemble((at, "$text-muted"), (f"{each.sign} ", each.style), first)
            yield from (Content(" " * _AT + other) for other in others)


def happened(state: RunState, findings: Iterable[Finding] = ()) -> list[Happened]:
    """The events of a run as rows, newest first.

    Args:
        state: The run.
        findings: Advice on it; each stands at the epoch in which its evidence begins.
    """
    found = [
        *(_told(event, state) for event in (*state.notices, *state.happened)),
        *_epochs(state),
        *_advice(state, findings),
    ]
    shown: list[Happened] = []
    routine: set[str] = set()
    for each in sorted(found, key=lambda each: each.time, reverse=True):
        if each.routine in routine:
            continue
        routine = routine | {each.routine} if each.routine else set()
        shown.append(each)
    return shown


def _epochs(state: RunState) -> Iterator[Happened]:
    """The latest epochs and validations, with the best of those that count."""
    best, name = state.best, state.monitor.removeprefix(VALIDATION_PREFIX).replace("_", " ")
    for event in reversed(state.measured(state.monitor)) if best else ():
        if best and event.step == best[0]:
            yield Happened(event.time, BEST, "bold $metric", f"best {name} {numbers.metric(best[1])}")
            break
    if epoch := state.epoch:
        loss = f"  loss {numbers.metric(epoch.metrics['loss'])}" if "loss" in epoch.metrics else ""
        before = max((part.started.epoch for part in state.parts if part.started.epoch < epoch.epoch), default=0)
        yield Happened(epoch.time, "·", "$text-muted", f"epoch {epoch.epoch - before:,}{loss}", "epoch")
    if validated := state.validated:
        value = validated.metrics.get(state.monitor.removeprefix(VALIDATION_PREFIX))
        figure = "" if value is None else f"  {name} {numbers.metric(value)}"
        yield Happened(validated.time, "·", "$text-muted", f"validated{figure}", "validation")


def _advice(state: RunState, findings: Iterable[Finding]) -> Iterator[Happened]:
    for finding in findings:
        first = finding.steps[0] if finding.steps else 0
        at = next((epoch.time for epoch in state.ended_epochs if epoch.step > first), None)
        if at is not None and finding.steps:
            yield Happened(at, SIGN, "bold $text-warning", f"{finding.title}, from step {first:,}")


def _told(event: Event, state: RunState) -> Happened:
    """An event as a line."""
    match event:
        case events.Warned():
            mark = ("·", "$text-muted") if event.severity == "information" else ("!", "bold $warning")
            return Happened(event.time, *mark, event.message)
        case events.Recovered():
            words = f"{event.reason}: {event.action}, from step {event.step:,}"
            return Happened(event.time, "↻", "bold $warning", words)
        case events.PlanChanged():
            return Happened(event.time, "·", "$text-muted", plan_change_text(event))
        case events.CommandAnswered(obeyed=True, command="stop" | "stop_now"):
            return Happened(event.time, *ENDS[Outcome.STOPPED], event.answer)
        case events.CommandAnswered(obeyed=True):
            return Happened(event.time, "✓", "$success", event.answer)
        case events.CommandAnswered():
            return Happened(event.time, "✗", "$error", f"{event.command.replace('_', ' ')}: {event.answer}")
        case events.CheckpointSaved():
            words = f"checkpoint {event.step:,}{', best so far' if event.best else ''}"
            return Happened(event.time, "◆", "$primary", words, "checkpoint")
        case events.LearningRateChanged():
            words = f"learning rate {numbers.learning_rate(event.learning_rate)} from step {event.step:,}"
            return Happened(event.time, "▲", "$rate", words)
        case events.XlaTried():
            return Happened(event.time, "·", "$text-muted", f"XLA {'on' if event.xla else 'off'}")
        case events.PartStarted():
            return Happened(event.time, "▶", "$primary", f"part {event.part}: {event.name}")
        case events.PartEnded():
            return Happened(event.time, *ENDS[event.outcome], f"part {event.part} {event.outcome}")
        case events.RunStarted():
            words = f"continued from step {event.first_step:,}" if event.first_step else "started"
            return Happened(event.time, "▶", "$primary", words)
        case events.RunEnded():
            unit = "batch size" if state.info and state.info.bench else "step"
            words = f"{event.outcome} after {numbers.counted(event.steps, unit)}"
            return Happened(event.time, *ENDS[event.outcome], words)
    return Happened(event.time, "·", "$text-muted", event.kind())
