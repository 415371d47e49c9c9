"""A card of the current run of a list: its last curves, what it trained and how, and what can be done with it."""

import asyncio
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import nlargest, nsmallest
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import work
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from accel_engine.errors import AccelError
from accel_engine.plan import RUN_TEXTS
from accel_engine.run import RunInfo, RunReader, RunSummary, Status
from accel_engine.run.directory.run_paths import host_of_run, trained_model
from accel_engine.run.history.history import best_point
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.text import printable, printable_fields, printable_line
from accel_engine.words import numbers
from accel_tui.formatting.runs import lost_reason
from accel_tui.formatting.text import base_name, shorten, shorten_middle, shorten_start
from accel_tui.plan import field_labels
from accel_tui.run_list.columns import SYMBOLS, run_title, status_of
from accel_tui.run_list.groups import RunGroup, result_of, short_metric_name
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState
from accel_tui.terminal.textual_private import show_border_title
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart_panels.run_panels import panel_series, panels_of
from accel_tui.widgets.styled_text import show_text

if TYPE_CHECKING:
    from accel_engine.advice import Finding

PAUSE_SECONDS = 0.2
"""Seconds that the cursor rests on a run before it is read and shown: keys that follow sooner cost only a move."""

MIRROR_SECONDS = 5.0
"""Most seconds that a card waits for the steps of a run of a host."""

_BUCKETS = 512
_EVENTS = 4096
_LABEL = 7  # cells of the names of facts
_NAMED = 10  # runs of a group that are named
_NAMED_SHORT = 3  # the same in a short card
_SHORT = 12  # lines of a card below which it is short
_NAME = 26  # cells of the names of a group's best runs
_CHARTS = 2
_CORNERS, _LEAST_NAME = 6, 8  # cells of the frame beside its title, and of a name in it


@dataclass(frozen=True, slots=True, eq=False)
class CardContent:
    """The contents of a card."""

    state: RunState = RunState()  # noqa: RUF009 (it is frozen)
    """The run with its steps."""
    findings: "tuple[Finding, ...]" = ()
    """What is wrong with it."""
    model_bytes: int = 0
    """Size of the file of its trained model; 0 without one."""


def read_card(directory: Path, *, has_ended: bool, steps: int = 0) -> CardContent:
    """Read a run; takes too long for the event loop.

    Args:
        directory: The run's directory.
        has_ended: Whether it has ended: the advice on a live run would be read again and again.
        steps: How many steps it has by its host; these are waited for, at most :data:`MIRROR_SECONDS`.

    Raises:
        RunError: The run cannot be read.
        OSError: The file of its model cannot be read.
    """
    state, size = RunState(), 0
    findings: tuple[Finding, ...] = ()
    reader = RunReader(directory, max_samples=0, max_buckets=_BUCKETS, max_events=_EVENTS, past_phases=False)
    try:
        deadline = time.monotonic() + MIRROR_SECONDS
        while True:
            update = reader.poll()
            state = apply_update(state, update)
            if not update.more:
                if state.step >= steps or time.monotonic() > deadline:
                    break
                time.sleep(0.1)
        state = replace(state, info=printable_fields(reader.info()))
    finally:
        reader.close()
    if has_ended:
        from accel_tui.run_state.advice import read_advice  # the list is shown without it

        findings = read_advice(directory).findings
    if model := trained_model(directory):
        size = model.stat().st_size
    return CardContent(state, findings, size)


@dataclass(frozen=True, slots=True)
class CardKey:
    """A key that does something with the run."""

    key: str
    """As it is shown."""
    label: str
    """What it does."""
    action: str
    """The action of the screen."""


class RunCard(VerticalScroll, can_focus=False):
    """The current run of a list, or the group whose heading is the current line.

    Args:
        keys: The keys that do something with the current run.
    """

    DEFAULT_CSS = """
    RunCard {
        width: 43;
        height: 1fr;
        border: round $border;
        border-title-color: $foreground;
        border-title-style: bold;
        padding: 0 1;
        scrollbar-size: 1 1;
        scrollbar-gutter: stable;
        & > Static { height: auto; link-style: none; link-color: $foreground; link-background: transparent; }
        & > Chart { height: 7; display: none; }
        &.-charts > Chart { display: block; }
        &.-short > Chart { display: none; }
    }
    """

    def __init__(self, keys: Callable[[], Iterable[CardKey]]) -> None:
        super().__init__()
        self._keys = keys
        self._subject: RunSummary | RunGroup | None = None
        self._content = CardContent()
        self._pause: Timer | None = None
        self._head, self._facts = Static(markup=False), Static(markup=False)
        self._charts = [Chart(id=f"card-{number}") for number in range(_CHARTS)]

    def compose(self) -> ComposeResult:
        yield self._head
        yield from self._charts
        yield self._facts

    def show(self, subject: RunSummary | RunGroup | None) -> None:
        """Show a run or a group of runs as soon as the cursor rests on it."""
        if subject is self._subject:
            return
        self._subject = subject
        if self._pause:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE_SECONDS, self._read)

    @work(exclusive=True, exit_on_error=False, group="card")
    async def _read(self) -> None:
        subject = self._subject
        if not self.size:
            return
        content = CardContent()
        if isinstance(subject, RunSummary) and subject.info:
            has_ended = subject.status is not None and not subject.status.live
            steps = subject.steps if host_of_run(subject.directory) else 0
            shown = self._content.state.info
            if steps and (shown is None or shown.directory != subject.directory):
                self._content = content  # without the steps, for which it may take long
                self._update()
            with suppress(AccelError, OSError):  # the list shows the problem as soon as it reads the run again
                content = await asyncio.to_thread(read_card, subject.directory, has_ended=has_ended, steps=steps)
        if self._subject is subject:
            self._content = content
            self._update()

    def on_resize(self) -> None:
        """Read what was not shown while there was no room."""
        self._read()

    def _update(self) -> None:
        subject = self._subject
        if isinstance(subject, RunSummary):
            self._show_run(printable_fields(subject))
            return
        self.remove_class("-charts")
        self._show_title(*((printable_line(subject.path[-1]), subject.note, "$text-muted") if subject else ("",) * 3))
        if self._is_short:
            self._head.display = False
            show_text(self._facts, Content("\n").join(_group_lines(subject, _NAMED_SHORT)) if subject else Content(""))
            return
        self._head.display = True
        show_text(self._head, Content("\n").join(_group_lines(subject)) if subject else Content(""))
        show_text(self._facts, Content(""))

    def _show_run(self, run: RunSummary) -> None:
        info, content = run.info, self._content
        symbol, colour = SYMBOLS[run.status]
        self._show_title(run_title(run), f"{symbol} {_status(run, content.state)}", f"${colour}")
        head = list(_head(run))
        self._head.display = bool(head)
        show_text(self._head, Content("\n").join(head))
        if not self._is_short:
            self._draw(content.state, run)
        self.set_class(self._is_short, "-short")
        if info is None:
            show_text(self._facts, Content.styled(run.problem, "$text-warning"))
            return
        facts = [*_facts(run, info, content)]
        if self._is_short:
            show_text(self._facts, Content("\n").join(self._short_lines(facts, info, content)))
            return
        room = max(10, (self.scrollable_content_region.width or 40) - _LABEL)
        lines = [
            Content.assemble((f"{'' if number else label:<{_LABEL}}", "$text-muted"), line)
            for label, value in facts
            for number, line in enumerate(textwrap.wrap(value, room) or [""])
        ]
        lines += [Content.styled(f"⚑ {each.title}", "$warning") for each in content.findings]
        where = shorten_start(printable(str(info.directory)), max(10, self.scrollable_content_region.width - 1))
        lines += [Content(""), *_again(info), Content.styled(where, "$text-disabled")]
        show_text(self._facts, Content("\n").join([*lines, Content(""), *self._key_lines()]))

    def _show_title(self, name: str, state: str, colour: str) -> None:
        """Show a name, cut where there is no room for it beside the state."""
        name = shorten_middle(name, max(self.outer_size.width - _CORNERS - cell_len(f"  {state}"), _LEAST_NAME))
        title = Content.assemble(name, (f"  {state}", f"{colour} not bold")) if name else Content("")
        show_border_title(self, title)

    @property
    def _is_short(self) -> bool:
        """Whether there is room only for what matters most."""
        return self.size.height < _SHORT

    def _short_lines(self, facts: list[tuple[str, str]], info: RunInfo, content: CardContent) -> Iterator[Content]:
        """The facts one after the other, advice, and how the run is made again: a line each."""
        width = max(10, self.scrollable_content_region.width or 76)
        known = dict(facts)
        for names in (("best", "result", "speed", "time"), ("data", "plan", "model"), ("note", "tags")):
            parts = [Content.assemble((f"{name} ", "$text-muted"), known[name]) for name in names if name in known]
            while parts[1:] and sum(3 + each.cell_length for each in parts) > width + 3:
                parts.pop()  # rather than cutting a number
            if parts:
                yield Content("   ").join(parts).truncate(width, ellipsis=True)
        if content.findings:
            titles = ", ".join(each.title for each in content.findings)
            yield Content.styled(f"⚑ {titles}", "$warning").truncate(width, ellipsis=True)
        for line in _again(info):
            yield line.truncate(width, ellipsis=True)

    def _draw(self, state: RunState, run: RunSummary) -> None:
        """Draw the first charts of the run, with the values of the list."""
        metrics = run.metrics or {}
        panels = panels_of(state, frozenset())[:_CHARTS] if state.info else ()
        drawn = [(panel, panel_series(state, panel)) for panel in panels]
        has_values = any(series.curve.end_step or series.points for _, each in drawn for series in each)
        self.set_class(has_values, "-charts")
        for chart, (panel, series) in zip(self._charts, drawn, strict=False):
            chart.title, chart.y_limits, chart.end = panel.title, panel.limits, state.last_step
            names = (panel.name if each.curve.end_step else VALIDATION_PREFIX + panel.name for each in series)
            chart.series = tuple(
                replace(each, value=metrics.get(name)) for each, name in zip(series, names, strict=True)
            )

    def _key_lines(self) -> Iterator[Content]:
        """The actions, in columns."""
        keys = list(self._keys())
        width = 3 + max((len(f"{each.key} {each.label}") for each in keys), default=0)
        columns = max(1, (self.scrollable_content_region.width or 40) // width)
        for first in range(0, len(keys), columns):
            yield Content("").join(_key_content(each, width) for each in keys[first : first + columns])


def _key_content(key: CardKey, width: int) -> Content:
    """A key that can be clicked."""
    label = Content(f" {key.label}".replace(" ", "\N{NO-BREAK SPACE}")).stylize(f"@click=screen.{key.action}")
    shown = Content.styled(key.key, "$accent bold") + label
    return shown + Content(" " * (width - shown.cell_length))


def _status(run: RunSummary, state: RunState) -> str:
    """The status, with how far a live run is."""
    if run.status is Status.RUNNING and state.progress:
        return f"{run.status} {numbers.percent(state.progress, 0)}"
    return status_of(run)


def _head(run: RunSummary) -> Iterator[Content]:
    """Why the run waits, or has ended."""
    info = run.info
    if info and info.waiting:
        yield Content.styled(info.waiting.waiting, "$text-warning")
    elif info and info.status is Status.LOST:
        yield Content.styled(f"lost: {lost_reason(info)}", "$text-error")
    elif run.reason:
        yield Content.styled(run.reason, "$text-error" if run.status is Status.FAILED else "$text-muted")


def _facts(run: RunSummary, info: RunInfo, content: CardContent) -> Iterator[tuple[str, str]]:
    """The facts on a run: names and values."""
    state, plan = content.state, info.plan
    found = best_point(state.points(run.monitor), run.monitor, info.plan_values) if state.info else None
    if (result := result_of(run)) and not result.is_best:
        yield "result", f"{result.title} {result.text}"
    if run.best is not None and not info.bench:
        at = f" at step {found[0]:,}" if found and found[1] == run.best else ""
        yield "best", f"{short_metric_name(run.monitor)} {numbers.metric(run.best)}{at}"
    if run.membership:
        yield "worker", str(run.membership)
    values = {**info.plan_values} if plan is None else plan.changed()
    if model := str(info.setting("model") or ""):
        changed = (
            f"{field_labels.label(name)} {_value(value)}"
            for name, value in values.items()
            if name not in RUN_TEXTS and not isinstance(value, dict)
        )
        yield "plan", " · ".join([base_name(model), *changed])
    if data := str(info.setting("data") or ""):
        built = state.built
        examples = f" {built.examples:,}" if built and built.examples else ""
        more = f" + {built.validation_examples:,}" if built and examples and built.validation_examples else ""
        yield "data", base_name(data) + examples + more
    if speed := state.steps_per_second:
        devices = ", ".join(each.name for each in state.devices.devices) if state.devices else ""
        yield "speed", f"{numbers.compact(speed)} steps/s" + (f" on {devices}" if devices else "")
    if run.seconds:
        yield "time", numbers.duration(run.seconds) + (f", {run.steps:,} steps" if not info.bench else "")
    parameters = state.built.parameters if state.built else None
    sizes = [f"{parameters:,} parameters"] if parameters else []
    sizes += [numbers.size(content.model_bytes)] if content.model_bytes else []
    if sizes:
        yield "model", ", ".join(sizes)
    if info.annotations.tags:
        yield "tags", " ".join(f"#{tag}" for tag in info.annotations.tags)
    if info.annotations.note:
        yield "note", info.annotations.note
    if info.host:
        yield "host", info.host


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _again(info: RunInfo) -> Iterator[Content]:
    """How the run is made again."""
    if info.script:
        yield Content(f"$ {info.script}")
    elif info.source:
        yield Content.styled(f"imported from {info.source.path} ({info.source.format})", "$text-muted")
    elif info.bench:
        yield Content.styled(f"{info.made}, {info.bench}", "$text-muted")
    elif info.plan:
        yield Content(f"$ {info.plan.command()}")
    else:
        yield Content.styled("the plan cannot be read on this machine", "$text-warning")


def _group_lines(group: RunGroup, most: int = _NAMED) -> Iterator[Content]:
    """The best runs of a group, at most some, and how many runs have each status."""
    results = [(found, run) for run in group.runs if (found := group.result(run))]
    lower = results[0][0].lower if results else None
    if lower is not None:
        results = (nsmallest if lower else nlargest)(most, results, key=lambda each: each[0].value)
    yield Content.styled(results[0][0].title if results else "no results yet", "$text-muted")
    for number, (found, run) in enumerate(results[:most]):
        name = shorten(printable_line(run_title(run)), _NAME)
        yield Content.assemble(
            (f"{group.text(found.series, found.value):>8}", "bold"), "    " if number else "  ★ ", name
        )
    counts = Counter(map(status_of, group.runs))
    told = ", ".join(f"{count:,} {word}" for word, count in counts.items())
    if most < _NAMED:
        yield Content.styled(told, "$text-muted")
        return
    yield Content("")
    yield Content.styled(told, "$text-muted")
    yield Content("")
    yield Content.styled("⏎ folds and unfolds, space selects all", "$text-muted")
