"""The report on a run: one HTML file that needs nothing else."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.theme import Theme

from accel_engine.errors import AccelError, file_errors
from accel_engine.events import Outcome
from accel_engine.files import replacing
from accel_engine.plan.fields import DEFAULTS
from accel_engine.run import RunInfo, RunReader, Status
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.run.store.series_names import VALIDATION_PREFIX
from accel_engine.text import printable_fields
from accel_engine.version import __version__
from accel_engine.words import numbers
from accel_tui.appearance.theme import DARK, LIGHT
from accel_tui.formatting.advice import cure_text, evidence_text
from accel_tui.formatting.bench_figures import bench_figure
from accel_tui.plan import field_labels
from accel_tui.report.diagnostics import diagnostics_section
from accel_tui.report.html import Html, element, joined, page, pairs, section
from accel_tui.run_state.advice import Advice, read_advice
from accel_tui.run_state.curve import CAPACITY
from accel_tui.run_state.diagnostics import DiagnosticsReading, read_diagnostics
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.chart_view import PLAIN, ChartView, steps_of
from accel_tui.widgets.chart.draw_values import BEST
from accel_tui.widgets.chart.figure import figure_of
from accel_tui.widgets.chart.figure_files import figure_style, svg_of
from accel_tui.widgets.chart.value_axis import axis_of
from accel_tui.widgets.chart_panels.run_panels import Panel, panel_format, panel_series, panels_of
from accel_tui.widgets.chart_panels.shared_axis import BatchAxis
from accel_tui.widgets.run.run_details import facts_of, machine_facts
from accel_tui.widgets.run.run_outcome import outcome_text

MOST_CHARTS = 24
"""Charts of a report; of further series the last value is in a table."""

_SIZE = 560.0, 230.0
"""Width and height of a chart in points; the page makes it as wide as fits."""

_ROWS = 9  # of a chart in cells, which decide how many labels its axis has


def write_report(directory: Path, path: Path) -> None:
    """Write the report on a run, which may be live, to a file.

    Raises:
        RunError: The run cannot be read, or the file cannot be written.
    """
    content = report_of(directory)
    with file_errors(f"cannot write {path}"), replacing(path) as temporary:
        temporary.write_text(content, encoding="utf-8")


def report_of(directory: Path) -> str:
    """The report on a run, as HTML.

    Raises:
        RunError: The run cannot be read.
    """
    state = _state_of_run(directory)
    assert state.info is not None  # noqa: S101 (it was read)
    found = read_diagnostics(directory, DiagnosticsReading()).diagnostics
    machine = machine_facts(state)
    about = [fact for fact in facts_of(state) if fact not in machine and fact[0] != "checkpoint"]
    return page(
        f"{state.info.title} - accel-tui",
        _style(),
        _heading(state, state.info),
        section("Curves", *_charts(state)),
        element(
            "div",
            section("Plan", _plan(state.info)),
            section("Model and data", pairs(about)),
            class_="columns",
        ),
        diagnostics_section(found) if found else "",
        _advice(directory),
        element(
            "div",
            section("Environment", pairs(_environment(state, machine))),
            section("Repeat", *_commands(state.info)),
            class_="columns",
        ),
        element("p", f"Written by accel-tui {__version__} on {_date(time.time())}.", class_="quiet"),
    )


def _state_of_run(directory: Path) -> RunState:
    """The state of a run now, with printable texts.

    Raises:
        RunError: The run cannot be read.
    """
    with closing(RunReader(directory, max_samples=0, max_buckets=CAPACITY, past_phases=False)) as reader:
        info = reader.info()
        state = RunState(info=printable_fields(info))
        while update := reader.poll():
            state = apply_update(state, update)
            if not update.more:
                break
    return state if info.status.live else replace(state, model=trained_model(directory))


def _style() -> str:
    """The style of the page, in the colours of the dashboard: light, or dark where the reader prefers that."""
    light, dark = (f":root{{{_variables(theme)}}}" for theme in (LIGHT, DARK))
    css = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    return f"{light}@media (prefers-color-scheme: dark){{{dark}}}{figure_style()}{css}"


def _variables(theme: Theme) -> str:
    colours = {
        "background": theme.background,
        "surface": theme.surface,
        "text": theme.foreground,
        "muted": theme.variables["text-muted"],
        "grid": theme.variables["border"],
        "primary": theme.primary,
        "secondary": theme.secondary,
        "success": theme.success,
        "warning": theme.warning,
        "error": theme.error,
    }
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def _heading(state: RunState, info: RunInfo) -> Html:
    """Name, status and when; then how it has ended, or how far it is."""
    status = str(info.status)
    notes = [info.id, f"created {_date(info.created)}" if info.created else "", f"on {info.host}" if info.host else ""]
    tags = ", ".join(info.annotations.tags)
    lines = [
        element("h1", info.title, element("span", status, class_=f"badge {_kind(state)}")),
        element("p", " · ".join(filter(None, (*notes, tags))), class_="quiet"),
        element("p", info.annotations.note) if info.annotations.note else "",
    ]
    outcome = outcome_text(state).plain if state.has_ended else _progress(state)
    return joined([*lines, element("div", outcome, class_=f"outcome is-{_kind(state)}") if outcome else ""])


def _kind(state: RunState) -> str:
    """The class of the outcome in the page's style."""
    if state.lost:
        return "lost"
    if state.has_ended and state.ended:
        return {Outcome.FINISHED: "finished", Outcome.STOPPED: "stopped"}.get(state.ended.outcome, "failed")
    return "running" if state.live and not state.is_queued else "queued"


def _progress(state: RunState) -> str:
    """How far a live run is, and its latest values."""
    if state.info and state.info.status is Status.QUEUED:
        return "The run waits in the queue."
    steps = f"step {state.step:,}" + (f" of {state.total_steps:,}" if state.total_steps else "")
    epoch = f", epoch {state.current_epoch:,} of {state.epochs:,}" if state.current_epoch else ""
    lines = [f"When this was written: {steps}{epoch}."]
    if values := ", ".join(f"{name.replace('_', ' ')} {numbers.metric(each)}" for name, each in state.metrics.items()):
        lines.append(f"Latest values: {values}")
    return "\n".join(lines)


def _charts(state: RunState) -> Iterator[Html]:
    """The dashboard's charts, except the ones of devices."""
    panels = [panel for panel in panels_of(state, frozenset()) if not panel.of_devices]
    drawn = [svg for panel in panels[:MOST_CHARTS] if (svg := _chart(state, panel))]
    if drawn:
        yield element("div", *drawn, class_="charts")
    rest = [(panel.title, state.curves[panel.name]) for panel in panels[MOST_CHARTS:] if panel.name in state.curves]
    if rest:
        rows = [(title, numbers.metric(curve.last_value)) for title, curve in rest]
        summary = element("summary", f"{numbers.counted(len(rest), 'further series')}: the last values")
        yield element("details", summary, pairs(rows))


def _chart(state: RunState, panel: Panel) -> Html:
    """A chart; empty if there is nothing to draw."""
    series, axis = panel_series(state, panel), BatchAxis.of([state])
    if axis:
        series = tuple(axis.place_on_axis(0, each, bench_figure(panel.name).size) for each in series)
    last = axis.ticks if axis else steps_of(series)
    if last < 1 or all(math.isnan(each.latest) for each in series):
        return Html("")
    window = (axis.bounds if axis else None) or (0, max(last, 2))
    options = PLAIN.exact if panel.is_exact else PLAIN
    counts = panel.name == state.monitor.removeprefix(VALIDATION_PREFIX)
    best = state.best if counts else None
    view = ChartView(
        columns=120,
        rows=_ROWS,
        x=Axis(*map(float, window)),
        y=axis_of(series, window, options, panel.bounds, None, _ROWS, panel.limits),
        series=series,
        title=panel.title,
        value=panel_format(panel, state.info),
        options=options,
        scale=axis.scale if axis else None,
        marks=state.marks,
        note=f"best {numbers.metric(best[1])} {BEST} {best[0]:,}" if best else "",
        best=(best[0] - 1, best[1]) if best else None,
    )
    return element("div", Html(svg_of(figure_of(view, *_SIZE))), class_="single")


def _plan(info: RunInfo) -> Html:
    """The fields that differ from the defaults, and the other fields."""
    values = {name: value for name, value in info.plan_values.items() if name not in ("name", "config")}
    if not info.has_engine:
        return pairs(_fields(values))
    changed = {name: value for name, value in values.items() if _plain(value) != _plain(DEFAULTS.get(name))}
    always = {name: values[name] for name in ("model", "data") if name in values}
    others = {name: value for name, value in values.items() if name not in changed and name not in always}
    summary = element("summary", f"{len(others)} fields at their defaults")
    return joined((pairs(_fields(always | changed)), element("details", summary, pairs(_fields(others)))))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _fields(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        empty = value in (None, "", [], ())
        shown = field_labels.placeholder(name) or "—" if empty else value
        yield field_labels.label(name), ", ".join(map(str, shown)) if isinstance(shown, list | tuple) else str(shown)


def _advice(directory: Path) -> Html:
    try:
        advice = read_advice(directory)
    except AccelError as error:
        return section("Advice", element("p", f"The run cannot be judged: {error}", class_="quiet"))
    if advice.info.bench:
        return Html("")
    if not advice.findings:
        return section("Advice", element("p", "Nothing was found.", class_="quiet"))
    return section("Advice", *_findings(advice))


def _findings(advice: Advice) -> Iterator[Html]:
    for finding in advice.findings:
        yield element("h3", finding.title)
        rows = [("evidence", evidence_text(each)) for each in finding.evidence]
        rows += [("cost", finding.cost)] if finding.cost else []
        rows += [("cure", cure_text(cure, advice.info)) for cure in finding.cures]
        before = ["", *(label for label, _ in rows)]
        yield pairs(("" if label == last else label, value) for last, (label, value) in zip(before, rows, strict=False))


def _environment(state: RunState, machine: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    versions = state.started.versions if state.started else {}
    yield from machine
    yield from versions.items()
    if state.info and state.info.host:
        yield "host", state.info.host


def _commands(info: RunInfo) -> Iterator[Html]:
    """The commands that repeat the run, and that show it."""
    if info.script:
        command = info.script
    elif info.plan is not None and info.has_engine:
        command = info.plan.command()
    else:
        command = ""
    if command:
        yield element("pre", command)
        if info.has_engine and (seed := info.plan_values.get("seed")) is not None:
            yield element("p", f"With the seed {seed}, which is part of the plan.", class_="quiet")
    elif info.has_engine:
        yield element("p", "This machine cannot load the plan: a file of it has moved.", class_="quiet")
    yield element("p", "Where the run is:", class_="quiet")
    yield element("pre", f"accel-tui watch {info.id}")


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
