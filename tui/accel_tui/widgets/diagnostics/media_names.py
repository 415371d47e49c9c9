"""The names under which images, texts and histograms were logged."""

from collections.abc import Iterator

from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.run.media import MediaSeries
from accel_engine.text import printable_line
from accel_tui.formatting.text import fit, shorten_middle
from accel_tui.widgets.text_page import TextPage

_HEADS = ("NAME", "KIND", "STEPS", "LAST STEP")
_KIND, _STEPS, _LAST = 9, 6, 9  # widths of the columns after the name
_ALL_COLUMNS = _KIND + _STEPS + _LAST + 3
_NAME = 18  # width of a name for which columns are left out, that of the number of steps first


class MediaNames(TextPage):
    """A line per name and kind, one of them chosen."""

    series: reactive[tuple[MediaSeries, ...]] = reactive((), repaint=False)
    """The series; the chosen one stays chosen when others are added."""

    chosen: reactive[int] = reactive(0, repaint=False)
    """Index of the chosen series."""

    _first = 0  # visible

    class Chosen(Message):
        """Another series was chosen."""

    @property
    def chosen_series(self) -> MediaSeries | None:
        """The chosen series; ``None`` if there is none."""
        return self.series[self.chosen] if self.series else None

    def watch_series(self, before: tuple[MediaSeries, ...], series: tuple[MediaSeries, ...]) -> None:
        """Follow the chosen series to its new place."""
        names = [(each.name, each.kind) for each in series]
        was = before[self.chosen] if before else None
        if was and (was.name, was.kind) in names:
            self.chosen = names.index((was.name, was.kind))
        else:
            self.chosen = min(self.chosen, max(len(series) - 1, 0))
        self._lines_cache = None
        self.refresh(layout=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Width of all columns with the longest name."""
        del container, viewport
        return _ALL_COLUMNS + self._longest

    @property
    def _longest(self) -> int:
        return max(len(each) for each in (_HEADS[0], *(each.name for each in self.series)))

    def watch_chosen(self) -> None:
        """Show which one is chosen."""
        self.rebuild()

    def choose(self, names: int) -> None:
        """Choose the series that is this many lines below."""
        index = min(max(self.chosen + names, 0), max(len(self.series) - 1, 0))
        if index != self.chosen:
            self.chosen = index
            self.post_message(self.Chosen())

    def on_click(self, event: Click) -> None:
        """Choose the clicked series."""
        index = self._first + event.y - 1
        if event.y and index < len(self.series):
            self.choose(index - self.chosen)

    def on_mouse_scroll_down(self) -> None:
        """Choose the name below."""
        self.choose(1)

    def on_mouse_scroll_up(self) -> None:
        """Choose the name above."""
        self.choose(-1)

    def build_page(self, width: int, height: int) -> Iterator[Strip]:
        """Build the heads of the columns and the visible names; nothing if there is none."""
        if not self.series:
            return
        rows = max(height - 1, 1)
        first = min(self._first, self.chosen, max(len(self.series) - rows, 0))
        self._first = max(first, self.chosen - rows + 1)
        room = width - min(self._longest, _NAME)
        columns = 4 if room >= _ALL_COLUMNS else 3 if room >= _ALL_COLUMNS - _STEPS - 1 else 2
        yield self.line((_row(_HEADS, width, columns), "title"))
        for index, each in enumerate(self.series[self._first : self._first + rows], self._first):
            cells = (printable_line(each.name), each.kind, f"{each.count:,}", f"{each.last_step:,}")
            yield self.line((_row(cells, width, columns), "cursor" if index == self.chosen else ""))


def _row(cells: tuple[str, str, str, str], width: int, columns: int) -> str:
    name, kind, steps, last = cells
    end = f" {kind:<{_KIND}}" + f" {steps:>{_STEPS}}" * (columns > 3) + f" {last:>{_LAST}}" * (columns > 2)
    room = max(width - len(end), 1)
    return fit(shorten_middle(name, room), room) + end
