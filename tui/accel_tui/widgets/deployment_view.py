"""A deployment now and before: charts of its latest readings, and a card of its figures, version and URLs."""

import math
import textwrap
from collections.abc import Callable, Iterator

import numpy as np
from textual.app import ComposeResult
from textual.containers import Grid
from textual.content import Content
from textual.widgets import Static

from accel_engine.deployment.server_metrics import ServerFigures
from accel_engine.deployment.status import NOT_READY, READY, SILENT, DeploymentStatus
from accel_engine.text import printable, printable_line
from accel_engine.words import numbers
from accel_tui.formatting.bars import bar
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import ChartSeries, Colour
from accel_tui.widgets.chart.scale import XScale

HEALTH_COLOURS = {READY: "success", NOT_READY: "warning", SILENT: "error"}
"""The theme colours of health; muted for what is stopped."""

_SHORTEST = 60
"""Readings that charts have room for at least, so that the first ones do not fill them."""

_LABEL = 12  # cells of the names of facts
_VALUE = 9  # cells of the values after bars
_SECONDS = (5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)

_Figure = Callable[[ServerFigures], float | None]


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


_ERRORS = "errors in 10 s"

_CHARTS: tuple[tuple[str, tuple[tuple[str, Colour, _Figure], ...]], ...] = (
    (
        "requests/s",
        (("requests", "speed", lambda figures: figures.rate),),
    ),
    (
        "latency ms",
        (
            ("p99", "loss", lambda figures: _milliseconds(figures.p99)),
            ("p50", "loss-light", lambda figures: _milliseconds(figures.p50)),
        ),
    ),
    ("examples a batch", (("batch", "metric", lambda figures: figures.batch),)),
    (_ERRORS, (("errors", "error", lambda figures: float(figures.errors)),)),
)
"""The charts: title, and name, colour and value of each series."""

_BARS: tuple[tuple[str, str, _Figure, Callable[[float], str]], ...] = (
    ("requests/s", "speed", lambda figures: figures.rate, numbers.compact),
    ("p50", "loss-light", lambda figures: figures.p50, numbers.latency),
    ("p99", "loss", lambda figures: figures.p99, numbers.latency),
    ("batch", "metric", lambda figures: figures.batch, lambda value: f"{value:.1f}"),
    ("waiting", "rate", lambda figures: float(figures.queue), lambda value: f"{value:,.0f}"),
    ("memory", "gradient", lambda figures: float(figures.memory), numbers.size),
)
"""The bars of a card: name, colour, value, and how that is written.

A full bar is the highest value of the course; for p50, the highest of p99, and for memory, the machine's.
"""


class DeploymentCharts(Grid):
    """The course of a deployment: requests, latencies, batches and errors, by seconds before now."""

    DEFAULT_CSS = """
    DeploymentCharts {
        grid-size: 2 1;
        grid-gutter: 1 2;
        padding: 0 1;
        & > Chart.-second { display: none; }
    }
    """

    def compose(self) -> ComposeResult:
        for at, (title, _) in enumerate(_CHARTS):
            chart = Chart(title, y_bounds=(0.0, None), classes="-second" if at > 1 else "")
            chart.empty = "reading…"
            chart.is_count = title == _ERRORS
            yield chart

    def show_row(self, row: DeploymentStatus | None) -> None:
        """Draw the course of a deployment."""
        course = row.course if row else ()
        missing = max(0, _SHORTEST - len(course))
        now = course[-1][0] if course else 0.0
        first = course[0][0] - now if course else 0.0
        seconds = [*(first - at for at in range(missing, 0, -1)), *(at - now for at, _ in course)]
        count = len(seconds)
        steps = np.arange(count, dtype=np.float64) + 0.5
        scale = XScale("time", steps, np.array(seconds, np.float64), _SECONDS, lambda value, _: _before(value))
        for chart, (_, lines) in zip(self.query(Chart), _CHARTS, strict=True):
            idle = "no requests meanwhile" if course else "reading…"
            chart.empty = idle if row and row.runs else "no server runs"
            chart.format = _written
            chart.scale, chart.end, chart.window = scale, count, (0, count)
            drawn = []
            for name, colour, figure in lines:
                values = [math.nan] * missing + [_number(figure, figures) for _, figures in course]
                curve = RecordedCurve().extend(np.array(values, np.float64))
                is_known = not math.isnan(_number(figure, row.figures if row else None))
                if not math.isnan(curve.last_value):
                    drawn.append(
                        ChartSeries(name, curve, style=colour, is_resampled=True, value=None if is_known else math.nan)
                    )
            chart.series = tuple(drawn)


def _before(seconds: float) -> str:
    return "now" if seconds > -1 else f"-{numbers.duration(-seconds)}"


def _written(value: float) -> str:
    return numbers.compact(value) if value % 1 or value >= 1000 else f"{value:.0f}"


def _number(figure: _Figure, figures: ServerFigures | None) -> float:
    """A figure; not a number where it is unknown."""
    value = figure(figures) if figures else None
    return math.nan if value is None else value


class DeploymentCard(Static):
    """The current deployment: what it does, as bars, its versions, and how it is asked."""

    DEFAULT_CSS = "DeploymentCard { width: 43; height: 1fr; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._row: DeploymentStatus | None = None
        self._machine = 0

    def show_row(self, row: DeploymentStatus | None, since: str, machine: int) -> None:
        """Show a deployment.

        Args:
            row: The deployment.
            since: How long its server runs, in words.
            machine: Bytes of memory of this machine; 0 if unknown.
        """
        self._row, self._machine = row, machine
        self.border_title = printable_line(row.deployment.name) if row else ""
        self.border_subtitle = f"{row.health}{f', started {since}' * bool(since)}" if row else ""
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        content = Content("\n").join(self._lines(self._row)) if self._row else Content("")
        if self.content != content:
            self.update(content)

    def _lines(self, row: DeploymentStatus) -> Iterator[Content]:
        width = self.content_size.width or 39
        if row.problem:
            yield from (Content.styled(printable(row.problem), "$text-error"), Content(""))
        elif not row.runs:
            yield from (Content.styled("stopped; s starts it again", "$text-muted"), Content(""))
        if row.figures:
            yield from _bars(row.figures, row, self._machine, width)
        facts: list[tuple[str, str, str]] = []
        if row.total:
            share = f" ({numbers.percent(row.total.failed / row.total.requests)})" if row.total.failed else ""
            facts.append(("requests", f"{row.total.requests:,}", ""))
            facts.append(("errors", f"{row.total.failed:,}{share}", "$text-error" if row.total.failed else ""))
            facts.append(("", "", ""))
        deployment = row.deployment
        for label, number in (("version", deployment.current), ("before it", deployment.previous)):
            if number:
                version = deployment.version_of(number)
                facts.append((label, f"{number}: {printable_line(version.run)}", ""))
                facts.append(("", f"step {version.step:,}, {version.format}", "$text-muted"))
        facts += [
            ("", "", ""),
            ("URL", deployment.url, ""),
            ("", f"/v2/models/{deployment.name}/infer", "$text-muted"),
            ("", f"/v1/models/{deployment.name}:predict", "$text-muted"),
        ]
        if deployment.grpc_port:
            facts.append(("gRPC", f"{deployment.host}:{deployment.grpc_port}", ""))
        for label, text, style in facts:
            for at, line in enumerate(textwrap.wrap(text, max(width - _LABEL, 10)) or [""]):
                yield Content.assemble((f"{'' if at else label:<{_LABEL}}", "$text-muted"), (line, style))


def _bars(figures: ServerFigures, row: DeploymentStatus, machine: int, width: int) -> Iterator[Content]:
    """A line for each figure: its name, a bar, and its value."""
    room = max(width - _LABEL - _VALUE - 2, 4)
    ends = dict[str, float]()
    for label, _, figure, _ in _BARS:
        found = [_number(figure, each) for each in (*(each for _, each in row.course), figures)]
        ends[label] = max((each for each in found if not math.isnan(each)), default=0.0)
    ends |= {"p50": ends["p99"]} | ({"memory": machine} if machine else {})
    for label, colour, figure, write in _BARS:
        value, end = figure(figures), ends[label]
        drawn = bar(value / end, room) if value and end else ""
        text = "—" if value is None else write(value)
        rest = "─" * (room - len(drawn))
        yield Content.assemble(
            (f"{label:<{_LABEL}}", "$text-muted"), (drawn, f"${colour}"), (rest, "$border"), f"  {text:>{_VALUE}}"
        )
    of_machine = f", memory of {numbers.size(machine)}" if machine else ""
    yield Content.styled(f"of the highest{of_machine}", "$text-disabled")
    yield Content("")
