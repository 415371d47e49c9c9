"""Base of widgets that show several plots: a grid, or one of them at full size."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.reactive import reactive
from textual.strip import Strip

from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.cell_looks import look_of
from accel_tui.widgets.chart.figure import ChartFigure, figure_of_plot
from accel_tui.widgets.chart.figure_saver import SAVE, FigureSaver, stem_of
from accel_tui.widgets.chart.plot import Plot, draw_plot
from accel_tui.widgets.chart.plot_grid import GAP, grid_for
from accel_tui.widgets.text_page import TextPage


class PlotPage(TextPage, FigureSaver):
    """Some heading lines, and plots below them as large as fit; those that do not fit follow the selected one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "select_plot(-1)", id="plots.previous", tooltip="Select the previous plot"),
        Binding("down", "select_plot(1)", id="plots.next", tooltip="Select the next plot"),
        Binding(
            "f,enter", "maximize", "Maximize", id="plots.full-screen", tooltip="Show only the selected plot, or all"
        ),
        SAVE,
    ]

    selected: reactive[int] = reactive(0, repaint=False)
    """Index of the selected plot."""

    is_maximized: reactive[bool] = reactive(default=False, repaint=False)
    """Whether only the selected plot is shown."""

    min_size: ClassVar[tuple[int, int]] = (34, 8)
    """Smallest width and height of a plot in a grid with several."""

    _places: Sequence[tuple[int, int, int, int, int]] = ()  # x, y, width, height and index of each visible plot
    _count = 0
    in_view = range(0)
    """Indices of the visible plots."""

    def headings(self, width: int) -> Sequence[Strip]:
        """The lines above the plots."""
        return ()

    def plots(self) -> Sequence[Plot]:
        raise NotImplementedError

    @property
    def file_stem(self) -> str:
        """See :func:`stem_of`."""
        return stem_of(self.screen)

    @property
    def selected_figure(self) -> ChartFigure | None:
        plots = self.plots()
        return figure_of_plot(plots[min(self.selected, len(plots) - 1)]) if plots else None

    @property
    def figures(self) -> list[ChartFigure]:
        """The plots that are visible, for files."""
        return [figure_of_plot(self.plots()[at]) for at in self.in_view if at < self._count]

    def watch_selected(self) -> None:
        """Show which plot is selected."""
        self.rebuild()

    watch_is_maximized = watch_selected

    def action_select_plot(self, plots: int) -> None:
        self.selected = min(max(self.selected + plots, 0), max(self._count - 1, 0))

    def action_maximize(self) -> None:
        self.is_maximized = not self.is_maximized

    def on_click(self, event: Click) -> None:
        for x, y, width, height, index in self._places:
            if x <= event.x < x + width and y <= event.y < y + height:
                self.selected = index

    def build_page(self, width: int, height: int) -> Iterator[Strip]:
        """Build the headings and the plots."""
        plots = self.plots()
        self._count = len(plots)
        selected = min(self.selected, max(len(plots) - 1, 0))
        heads = self.headings(width)
        space = height - len(heads)
        if not plots or space < 3:
            yield from heads[:height]
            return
        across, down = (1, 1) if self.is_maximized else grid_for(len(plots), width, space, self.min_size)
        first = selected // (across * down) * across * down
        self.in_view = range(first, min(first + across * down, len(plots)))
        yield from self.headings(width)
        rows = space // down
        places, style = [], self.rich_style
        for line in range(down):
            frames, indices = [], range(first + line * across, min(first + (line + 1) * across, len(plots)))
            columns = (width - GAP * (len(indices) - 1)) // max(len(indices), 1)
            for index in indices:
                frames.append((index, draw_plot(plots[index], columns, rows)))
                x = (index - first - line * across) * (columns + GAP)
                places.append((x, len(heads) + line * rows, columns, rows, index))
            for row in range(rows):
                parts = [self._strip(frame, row, chosen=index == selected) for index, frame in frames]
                yield Strip.join([part.adjust_cell_length(columns + GAP, style) for part in parts])
        self._places = places

    def _strip(self, frame: Frame, row: int, *, chosen: bool) -> Strip:
        segments = []
        for text, name in frame.runs(row):
            is_title = row == 0 and name == "title" and chosen and self._count > 1
            segments.append(Segment(text, self.style_for("title") if is_title else self.plot_style(name)))
        return Strip(segments)

    def plot_style(self, name: str) -> Style:
        """The style of a chart's cells of that name."""
        return look_of(self, name)
