"""Samples as curves: a forecast over its truth, a vector beside its reconstruction, or a signal with its class."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.diagnostics import Example, ForecastReport
from accel_engine.run.diagnostics.views import Curve
from accel_engine.words import numbers
from accel_tui.run_state.curve import Floats
from accel_tui.widgets.chart.chart_view import Colour
from accel_tui.widgets.chart.plot import LINE, Plot, PlotSeries
from accel_tui.widgets.diagnostics.examples import ListedExamples, captions, leaves
from accel_tui.widgets.diagnostics.plot_page import PlotPage
from accel_tui.widgets.styled_text import TextSpan

_COLOURS: tuple[Colour, ...] = ("primary", "warning", "success", "secondary", "error")


class CurveGallery(PlotPage):
    """A plot per sample."""

    BINDING_GROUP_TITLE = "Curves"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,pagedown", "turn(1)", "Next", id="curves.next", tooltip="Next page"),
        Binding("left,pageup", "turn(-1)", "Previous", id="curves.previous", tooltip="Previous page"),
        Binding("full_stop", "series(1)", "Next series", id="curves.next-series", tooltip="Show the next series"),
        Binding("comma", "series(-1)", id="curves.previous-series", tooltip="Show the previous series"),
    ]

    min_size = (48, 10)

    examples: reactive[ListedExamples | None] = reactive(None, repaint=False)
    """The samples."""

    series: reactive[int] = reactive(0, repaint=False)
    """Index of the shown series among the series with a prediction."""

    def watch_examples(self, before: ListedExamples | None, examples: ListedExamples | None) -> None:
        """Show other samples, from the first if the order or the filter has changed."""
        if before and examples and (before.order, before.only_wrong) != (examples.order, examples.only_wrong):
            self.selected = 0
        self.refresh_bindings()
        self.rebuild()

    def watch_series(self) -> None:
        self.rebuild()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the next series if there are several."""
        return action != "series" or len(self._names) > 1

    def action_turn(self, pages: int) -> None:
        self.action_select_plot(pages * max(len(self._places), 1))

    def action_series(self, step: int) -> None:
        self.series = (self.series + step) % max(len(self._names), 1)

    @property
    def _shown(self) -> tuple[Example, ...]:
        return self.examples.shown if self.examples else ()

    @property
    def _names(self) -> tuple[str, ...]:
        """Names of the series with a prediction."""
        view = self._shown[0].output if self._shown else None
        return _names(view) if isinstance(view, Curve) else ()

    def headings(self, width: int) -> Sequence[Strip]:
        """Which samples are visible, and the series."""
        if self.examples is None:
            return ()
        names = self._names
        shown = self.series % max(len(names), 1)
        series = f"series {names[shown]} ({shown + 1} of {len(names)}, . next)" if len(names) > 1 else ""
        summary = self.line(*self.examples.summary(self.in_view.start, self.in_view.stop, width, series))
        return [summary, Strip([Segment(text, self.plot_style(style)) for text, style in self._legend()])]

    def _legend(self) -> Iterator[TextSpan]:
        """The colours of the curves, which are the same in all plots."""
        for line in self._lines(self._shown[0]) if self._shown else ():
            if line.name and line.kind != "rule":
                yield f"{LINE} ", line.style
                yield f"{line.name}   ", "label"

    def plots(self) -> Sequence[Plot]:
        """Make the plots of the shown samples."""
        return [self._plot(each) for each in self._shown]

    def _plot(self, example: Example) -> Plot:
        assert self.examples  # noqa: S101 (otherwise there are no samples)
        true, predicted = captions(self.examples.report, example)
        if predicted.style == "faint":
            title, note = true.text, predicted.text
        else:
            title = f"{true.mark}{true.text}"
            note = f"predicted {predicted.text}{predicted.suffix}, loss {numbers.metric(example.loss)}"
        return Plot(title, tuple(replace(line, name="") for line in self._lines(example)), note)

    def _lines(self, example: Example) -> Iterator[PlotSeries]:
        past = next((leaf for leaf in leaves(example.input) if isinstance(leaf, Curve)), None)
        output = example.output if isinstance(example.output, Curve) else None
        target = example.target if isinstance(example.target, Curve) else None
        if output is None:
            if past is not None:
                names = _names(past) if len(past.values) > 1 else ("",)
                for index, (name, colour) in enumerate(zip(names, _COLOURS, strict=False)):
                    yield _line(past, index, colour, name)
            return
        index = self.series % len(output.values)
        is_forecast = self.examples is not None and isinstance(self.examples.report, ForecastReport)
        if past is not None and (at := _past_index(past, output, index)) is not None:
            if is_forecast:  # in the colour of the true values
                yield PlotSeries(np.array([0.5]), np.array([]), "rule", "axis")
                yield _line(past, at, "primary", "", 1 - past.points)
            else:
                yield _line(past, at, "primary" if target is None else "secondary", "input")
        begin = 1 if is_forecast else 0
        for view, colour, name in ((target, "primary", "true"), (output, "warning", "predicted")):
            if view is not None and index < len(view.values):
                yield _line(view, index, colour, name, begin)


def _line(view: Curve, index: int, colour: Colour, name: str, begin: int = 0) -> PlotSeries:
    values: Floats = view.values[index].astype(np.float64)
    positions = np.linspace(begin, begin + max(view.points - 1, 0), len(values))
    return PlotSeries(positions, values, "line" if len(values) > 1 else "mark", colour, name)


def _names(view: Curve) -> tuple[str, ...]:
    return view.names or tuple(map(str, range(len(view.values))))


def _past_index(past: Curve, output: Curve, index: int) -> int | None:
    """Index of the input's series that a series of the output continues; ``None`` if there is none."""
    if past.names and output.names:
        return past.names.index(output.names[index]) if output.names[index] in past.names else None
    return index if index < len(past.values) else None
