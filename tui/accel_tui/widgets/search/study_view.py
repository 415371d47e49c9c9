"""The view of a search: one of several pictures of its trials, drawn in a thread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rich.segment import Segment
from rich.style import Style
from textual import work
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.errors import AccelError
from accel_engine.search.results import importance
from accel_engine.text import printable_line
from accel_tui.study_state.state import StudyState
from accel_tui.study_state.study_texts import objective_name
from accel_tui.terminal.dirty_regions import DirtyRegionWidget
from accel_tui.widgets.chart.cell_frame import Frame, changed_cells
from accel_tui.widgets.chart.cell_looks import look_of
from accel_tui.widgets.chart.figure import ChartFigure, figure_of_plot
from accel_tui.widgets.chart.frame_figure import figure_of_frame
from accel_tui.widgets.chart.plot import Plot
from accel_tui.widgets.search.contour_drawing import draw_contour
from accel_tui.widgets.search.curves_drawing import curves_plot, draw_curves
from accel_tui.widgets.search.parallel_drawing import draw_importance, draw_parallel
from accel_tui.widgets.search.study_plots import best_plots, draw_grid, front_plots, slice_plots
from accel_tui.widgets.search.study_styles import STUDY_LOOKS, STUDY_STYLES
from accel_tui.widgets.visibility import has_shades, is_covered

VIEWS: Mapping[str, str] = {
    "curves": "Curves",
    "best": "Best",
    "parallel": "Parallel",
    "importance": "Importance",
    "slices": "Slices",
    "contour": "Contour",
    "front": "Front",
}
"""Labels of the views."""

MOST_REGIONS = 40
"""Most regions that are painted by themselves; the whole picture is painted faster than more of them."""

_FILE_SIZE = 120, 30
"""Columns and rows of a picture in a file."""

_BLANK = "label"  # any style: a space has only its background


@dataclass(frozen=True, slots=True)
class Importance:
    """The importance of the parameters."""

    ended: int = -1
    """Number of ended trials that it was computed from."""
    shares: Mapping[str, float] | None = None
    """The share of each parameter; ``None`` if there are none."""
    problem: str = ""
    """Why there are none."""


def importance_of(state: StudyState, before: Importance) -> Importance:
    """The importance of a search's parameters, computed anew if trials have ended; takes up to a second."""
    trials = tuple(state.trials.values())
    ended = sum(not each.state.live for each in trials)
    if ended == before.ended:
        return before
    try:
        return Importance(ended, importance(state.parameters, state.monitor, trials))
    except AccelError as error:
        return Importance(ended, problem=printable_line(str(error)))


@dataclass(frozen=True, slots=True, eq=False)
class ViewInputs:
    """All that a picture depends on."""

    view: str
    """One of :data:`VIEWS`."""
    state: StudyState
    """The search."""
    selected: int | None
    """Number of the selected trial."""
    shift: int
    """Number of the first parameter, or pair of parameters."""
    importance: Importance
    """The importance, for its view."""
    columns: int
    """Width in cells."""
    rows: int
    """Height in cells."""
    has_tints: bool = True
    """Whether the terminal shows tints."""


def views_of(state: StudyState) -> tuple[str, ...]:
    """The views that a search can have: a contour needs two parameters, a front several objectives."""
    absent = {"contour"} if len(state.parameters) < 2 else set[str]()
    absent |= {"front"} if len(state.objectives) < 2 else set()
    return tuple(name for name in VIEWS if name not in absent)


def draw_view(inputs: ViewInputs) -> Frame:
    """Draw a view; a pure function that may take longer than a frame of the event loop."""
    state, selected, columns, rows = inputs.state, inputs.selected, inputs.columns, inputs.rows
    count = max(len(state.parameters), 1)
    empty = f"no trial has a value of {objective_name(state.monitor.name)} yet"
    match inputs.view:
        case "curves":
            return draw_curves(state, selected, columns, rows, has_tints=inputs.has_tints)
        case "best":
            return draw_grid(best_plots(state, selected), columns, rows, empty)
        case "parallel":
            return draw_parallel(state, selected, inputs.shift % count, columns, rows)
        case "importance":
            title = f"Importance for {objective_name(state.monitor.name)}"
            found = inputs.importance
            return draw_importance(found.shares or {}, found.problem, title, columns, rows)
        case "slices":
            return draw_grid(slice_plots(state, inputs.shift % count, selected), columns, rows, empty)
        case "contour":
            names = state.parameters
            pairs = [(first, second) for index, first in enumerate(names) for second in names[index + 1 :]]
            across, up = pairs[inputs.shift % len(pairs)] if pairs else (None, None)
            return draw_contour(state, across, up, selected, columns, rows)
        case _:
            text = "a front needs several objectives"
            if len(state.objectives) > 1:
                text = "no trial has values of two objectives yet"
            return draw_grid(front_plots(state, selected), columns, rows, text)


def plots_of(view: str, state: StudyState, selected: int | None, shift: int) -> Sequence[Plot]:
    """The plots of a view; none of parallel coordinates, contours and the importance, which are not plots."""
    match view:
        case "curves":
            return [curves_plot(state, selected)] if state.curves else []
        case "best":
            return best_plots(state, selected)
        case "slices":
            return slice_plots(state, shift % max(len(state.parameters), 1), selected)
        case "front":
            return front_plots(state, selected)
    return []


class StudyView(DirtyRegionWidget):
    """Shows a view of a search. Pictures of a thousand trials take longer than 10 ms, so a thread draws them."""

    DEFAULT_CSS = "StudyView { width: 1fr; height: 1fr; }"

    view: reactive[str] = reactive("curves", repaint=False)
    """One of :data:`VIEWS`."""

    selected: reactive[int | None] = reactive(None, repaint=False)
    """Number of the selected trial."""

    shift: reactive[int] = reactive(0, repaint=False)
    """Number of the first parameter, or pair of parameters."""

    def __init__(self) -> None:
        super().__init__()
        self._state = StudyState()
        self._frame = Frame.blank(0, 0)
        self._is_drawing = False
        self._is_stale = False
        self._importance = Importance()

    @property
    def state(self) -> StudyState:
        """The search. Not a reactive, which would compare it."""
        return self._state

    @state.setter
    def state(self, state: StudyState) -> None:
        self._state = state
        self.draw_again()

    @property
    def is_drawn(self) -> bool:
        """Whether the latest state is on the screen."""
        return self._frame.characters.size > 0 and not self._is_drawing

    def watch_view(self) -> None:
        """Draw another view."""
        self.draw_again()

    watch_selected = watch_shift = watch_view

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.draw_again()

    def draw_again(self) -> None:
        """Draw in a thread; once more if a drawing is under way."""
        if not self.is_mounted or not self.size or is_covered(self.screen):
            return
        self._is_stale = True
        if not self._is_drawing:
            self._begin()

    def _begin(self) -> None:
        self._is_drawing, self._is_stale = True, False
        width, height = self.size
        has_tints = has_shades(self) and not self.app.current_theme.ansi
        self._inputs = ViewInputs(
            self.view, self._state, self.selected, self.shift, self._importance, width, height, has_tints
        )
        self._draw()

    @work(thread=True, exit_on_error=False, group="draw")
    def _draw(self) -> None:
        # No arguments: Textual describes a worker by all of them, and repr() of a state takes long.
        frame, inputs = None, self._inputs
        try:
            if inputs.view == "importance":
                self._importance = importance_of(inputs.state, self._importance)
                inputs = replace(inputs, importance=self._importance)
            frame = draw_view(inputs)
        finally:
            self.call_later(self._show, frame)

    def _show(self, frame: Frame | None) -> None:
        self._is_drawing = False
        if frame is not None:
            old, self._frame = self._frame, frame
            if old.characters.shape == frame.characters.shape:
                if regions := changed_cells(old, frame):
                    self.refresh(*(regions if len(regions) <= MOST_REGIONS else ()))
            else:
                self.refresh()
        if self._is_stale and self.size:
            self._begin()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render the requested cells of the latest picture."""
        return [self._row(row, *crop.column_span) for row in crop.line_range]

    def _row(self, row: int, first: int, last: int) -> Strip:
        rows, columns = self._frame.characters.shape
        if row >= rows or first >= columns:
            return Strip.blank(last - first, self.cell_style(_BLANK))
        runs = self._frame.runs(row, first, last, STUDY_STYLES)
        strip = Strip([Segment(text, self.cell_style(name)) for text, name in runs])
        return strip.adjust_cell_length(last - first, self.cell_style(_BLANK))

    @property
    def figures(self) -> list[ChartFigure]:
        """The figures of this view for files: its plots, or the picture in the size for files."""
        if plots := plots_of(self.view, self._state, self.selected, self.shift):
            return [figure_of_plot(each) for each in plots]
        if not self.is_drawn:
            return []
        frame = draw_view(replace(self._inputs, importance=self._importance, columns=_FILE_SIZE[0], rows=_FILE_SIZE[1]))
        return [figure_of_frame(VIEWS[self.view], frame, STUDY_STYLES, STUDY_LOOKS)]

    def resolve_style(self, name: str) -> Style:
        """The style of that name in the current theme."""
        return look_of(self, name, STUDY_LOOKS)
