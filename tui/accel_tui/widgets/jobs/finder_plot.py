"""A widget with one plot of a finder, and a cursor that the mouse sets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from accel_tui.widgets.chart.cell_frame import STYLES, Frame
from accel_tui.widgets.chart.plot import Plot, draw_plot, position_at
from accel_tui.widgets.chart.style_rules import style_rules

MakePlot = Callable[[int], Plot]
"""Makes a plot for a number of rows."""


class FinderPlot(Widget):
    """Draws what it was last given to show, for its size."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"finder--{name}" for name in STYLES}
    DEFAULT_CSS = """
    FinderPlot {
        width: 1fr;
        height: 1fr;
        min-height: 6;
    }
    """ + style_rules("FinderPlot", "finder")

    @dataclass
    class Pointed(Message):
        """A position on the x axis was clicked; ``times`` counts repeated clicks."""

        value: float
        times: int

    _make: MakePlot | None = None
    _drawn: tuple[Size, Plot, Frame] | None = None

    def show(self, make: MakePlot) -> None:
        """Show a plot from the next repaint on."""
        self._make, self._drawn = make, None
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """A line of the plot."""
        if self._make is None or not self.size:
            return Strip.blank(self.size.width, self.rich_style)
        frame = self._draw(self._make)[1]
        if y >= frame.characters.shape[0]:
            return Strip.blank(self.size.width, self.rich_style)
        style = self.get_component_rich_style
        return Strip([Segment(text, style(f"finder--{name}")) for text, name in frame.runs(y)])

    def _draw(self, make: MakePlot) -> tuple[Plot, Frame]:
        """The plot at this size, which is drawn once for all its lines."""
        if self._drawn is None or self._drawn[0] != self.size:
            plot = make(self.size.height)
            self._drawn = self.size, plot, draw_plot(plot, *self.size)
        return self._drawn[1:]

    def on_click(self, event: Click) -> None:
        """Post the clicked position."""
        event.stop()
        if self._make is None:
            return
        value = position_at(self._draw(self._make)[0], *self.size, event.x)
        if value is not None:
            self.post_message(self.Pointed(value, event.chain))
