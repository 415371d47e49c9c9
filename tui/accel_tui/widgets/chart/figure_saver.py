"""What widgets with charts have in common: a key writes the selected one to files."""

import re
from pathlib import Path

from textual import work
from textual.binding import Binding
from textual.widget import Widget

from accel_engine.errors import AccelError
from accel_tui.widgets.chart.figure import ChartFigure
from accel_tui.widgets.chart.figure_files import write_new

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
        name = re.sub(r"[^\w.-]+", "-", f"{self.file_stem}-{drawn.title}").strip("-")
        try:
            paths = write_new(drawn, Path.cwd(), name, self.app.current_theme)
        except (AccelError, OSError) as error:
            self.app.notify(str(error), title="Chart not saved", severity="error", markup=False)
        else:
            self.app.notify("\n".join(map(str, paths)), title="Chart saved", markup=False)
