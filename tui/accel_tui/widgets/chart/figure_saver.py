"""Charts that a key writes to files: the selected one, or all that a screen shows."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from textual import work
from textual.app import App
from textual.binding import Binding
from textual.screen import Screen
from textual.widget import Widget

from accel_engine.errors import AccelError
from accel_engine.user_paths import current_directory
from accel_tui.widgets.chart.figure import ChartFigure, figure_of_plot
from accel_tui.widgets.chart.figure_files import write_new
from accel_tui.widgets.chart.plot import PlotView

SAVE = Binding(
    "W",
    "save",
    "Save chart",
    show=False,
    id="charts.save",
    tooltip="Write the selected chart to an SVG and a PNG file in the working directory",
)
"""The key."""


class FigureSaver(Widget):
    """Writes a chart to files; subclasses have the key :data:`SAVE`. Textual takes the style of the first base only."""

    @property
    def file_stem(self) -> str:
        """The beginning of the names of files with a chart."""
        raise NotImplementedError

    @property
    def selected_figure(self) -> ChartFigure | None:
        """The selected chart; ``None`` if it shows nothing."""
        raise NotImplementedError

    def action_save(self) -> None:
        """Write the selected chart to files."""
        if (drawn := self.selected_figure) is None:
            self.notify("There is nothing to draw yet.", title="Chart not saved", severity="warning", markup=False)
        else:
            self._save(drawn)

    @work(thread=True, exit_on_error=False, group="save-chart")
    def _save(self, drawn: ChartFigure) -> None:
        write_figures(self.app, self.file_stem, [drawn])


def drawing_widgets(screen: Screen[Any]) -> list[Widget]:
    """The plots that are on a screen, and all widgets there that have ``figures``."""
    shown = [each for each in screen.walk_children(Widget) if each.is_on_screen]
    return [each for each in shown if isinstance(each, PlotView) or hasattr(type(each), "figures")]


def figures_of(widgets: Sequence[Widget]) -> list[ChartFigure]:
    """The figures of widgets, those with ``figures`` first; may take too long for the event loop."""
    plots = [each.shown for each in widgets if isinstance(each, PlotView)]
    others = [each for each in widgets if hasattr(type(each), "figures")]
    figures = [figure for each in others for figure in cast(Any, each).figures]
    return [*figures, *(figure_of_plot(each) for each in plots if each)]


def write_figures(app: App[Any], stem: str, figures: Sequence[ChartFigure]) -> None:
    """Write charts to files in the working directory, and notify of their names; takes too long for the event loop.

    Args:
        app: Notifies, and has the theme.
        stem: The beginning of the names.
        figures: The charts.
    """
    paths: list[Path] = []
    try:
        for each in figures:
            name = re.sub(r"[^\w.-]+", "-", f"{stem}-{each.title}").strip("-")
            paths += write_new(each, current_directory(), name, app.current_theme)
    except (AccelError, OSError) as error:
        app.notify(str(error), title="Chart not saved", severity="error", markup=False)
    else:
        title = "Chart saved" if len(figures) == 1 else f"{len(figures)} charts saved"
        app.notify("\n".join(map(str, paths)), title=title, markup=False)


def stem_of(screen: Screen[Any]) -> str:
    """The beginning of the names of files with what a screen shows: the run's id, or the name of the screen."""
    if directory := getattr(screen, "directory", None):
        return str(directory.name)
    name = type(screen).__name__.removesuffix("Screen")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
