"""Images, texts and histograms that a script logged: their names, and the chosen one at one of its steps."""

from collections.abc import Hashable
from pathlib import Path
from typing import ClassVar, TypeAlias

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.worker import get_current_worker

from accel_engine.run.media import MediaSeries
from accel_tui.run_state.diagnostics import LoggedMedia, read_item
from accel_tui.widgets.diagnostics.drawn_item import DrawnItem, Surface, draw_item
from accel_tui.widgets.diagnostics.media_view import MediaNames, MediaView

_Request: TypeAlias = tuple[Path, MediaSeries, int | None, Surface]


class Logged(Horizontal):
    """A list of names, and the item of the chosen name. Shows the newest step until the user goes to another."""

    BINDING_GROUP_TITLE = "Logged"
    DEFAULT_CSS = """
    Logged {
        height: 1fr;
        & > MediaNames { width: auto; max-width: 48%; }
        & > MediaView { width: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "Earlier", id="logged.earlier", tooltip="Show the step before"),
        Binding("right", "move(1)", "Later", id="logged.later", tooltip="Show the step after"),
        Binding("home", "first", "First", id="logged.first", tooltip="Show the first step"),
        Binding("end", "newest", "Newest", id="logged.newest", tooltip="Show the newest step, also when one is added"),
        Binding("pagedown,space", "page(1)", id="logged.page-down", tooltip="Scroll a text down"),
        Binding("pageup", "page(-1)", id="logged.page-up", tooltip="Scroll a text up"),
    ]

    media: reactive[LoggedMedia | None] = reactive(None, repaint=False)
    """What the run has."""

    step: reactive[int | None] = reactive(None, repaint=False)
    """The step to show; ``None`` for the newest."""

    _wanted: _Request | None = None
    _current: Hashable = None

    def compose(self) -> ComposeResult:
        """Compose the list and the item."""
        yield MediaNames()
        yield MediaView()

    def on_mount(self) -> None:
        """Show what was set before."""
        self._list()

    def watch_media(self) -> None:
        """List the names, and read the chosen item again if it has changed."""
        if self.is_mounted:
            self._list()

    def watch_step(self) -> None:
        """Show another step."""
        self._read_chosen()

    def action_move(self, steps: int) -> None:
        """Show an earlier or a later step; the newest one is followed."""
        if (shown := self.query_one(MediaView).shown) and shown.logged.steps:
            index = shown.logged.index + steps
            newest = index >= len(shown.logged.steps) - 1
            self.step = None if newest else shown.logged.steps[max(index, 0)]

    def action_first(self) -> None:
        """Show the first step."""
        self.step = 0

    def action_newest(self) -> None:
        """Show the newest step, and follow it."""
        self.step = None

    def action_page(self, pages: int) -> None:
        """Scroll a text by pages."""
        self.query_one(MediaView).action_page(pages)

    @on(MediaNames.Moved)
    def _show_current(self, event: MediaNames.Moved) -> None:
        """Show the newest step of another name."""
        event.stop()
        names = self.query_one(MediaNames)
        current = names.key_of(names.current) if names.current else None
        if current != self._current:
            self._current, self.step = current, None
        self._read_chosen()

    @on(MediaView.Outdated)
    def _draw_again(self, event: MediaView.Outdated) -> None:
        event.stop()
        self._read_chosen()

    def _list(self) -> None:
        if self.media:
            self.query_one(MediaNames).show_series(self.media.series)

    def _read_chosen(self) -> None:
        series, surface = self.query_one(MediaNames).current, self.query_one(MediaView).surface
        if self.media and series and surface:
            wanted = (self.media.directory, series, self.step, surface)
            if wanted != self._wanted:
                self._wanted = wanted
                self._read(wanted)

    @work(thread=True, exclusive=True, exit_on_error=False, group="item")
    def _read(self, wanted: _Request) -> None:
        if not get_current_worker().is_cancelled:
            directory, series, step, surface = wanted
            self.call_later(self._show, wanted, draw_item(read_item(directory, series, step), surface))

    def _show(self, wanted: _Request, drawn: DrawnItem) -> None:
        if wanted == self._wanted:
            self.query_one(MediaView).shown = drawn
