"""Searches screen: all searches of this machine."""

import asyncio
import threading

from textual import getters, on, work
from textual.app import ComposeResult
from textual.containers import Container
from textual.events import ScreenResume

from accel_engine.text import printable
from accel_tui.app_protocol import Screens, open_screen
from accel_tui.screens.asking import BackScreen
from accel_tui.study_state.study_list import COLUMNS, ListedStudy, StudyList
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.search.study_view import StudyView
from accel_tui.widgets.search.trials_table import StudiesTable
from accel_tui.widgets.visibility import is_covered

INTERVAL = 5.0
"""Seconds between two reads of all searches."""

EMPTY = "No searches yet. Press N, write a range into a field of New run, then press S."
"""Text where there are none."""


class SearchesScreen(BackScreen):
    """Lists the searches of this machine, and draws the curves of the current one."""

    CSS_PATH = "searches_screen.tcss"
    AUTO_FOCUS = "StudiesTable"
    BINDING_GROUP_TITLE = "Searches"

    _table = getters.query_one(StudiesTable)
    _view = getters.query_one(StudyView)

    def compose(self) -> ComposeResult:
        """Compose the table."""
        yield TopBar("Searches")
        yield StudiesTable("reading the searches…")
        view = StudyView()
        view.set_reactive(StudyView.view, "curves")
        with Container(id="current", classes="panel"):
            yield view
        yield KeyBar()

    def __init__(self) -> None:
        super().__init__()
        self._studies = StudyList()
        self._reading = asyncio.Lock()

    def on_mount(self) -> None:
        """Read the searches, now and periodically."""
        self.set_interval(INTERVAL, self._refresh)

    @on(ScreenResume)
    @work(exit_on_error=False, group="searches")
    async def _refresh(self) -> None:
        if is_covered(self) or self._reading.locked():
            return
        async with self._reading:  # a thread cannot be cancelled, and a storage may take long to be reached
            found = await asyncio.to_thread(self._studies.read)
            self._table.empty = EMPTY
            self._table.show_rows(found, COLUMNS)

    def on_unmount(self) -> None:
        """Close the studies, without waiting for a storage that is being read."""
        threading.Thread(target=self._studies.close, daemon=True).start()

    @on(StudiesTable.Moved)
    def _show_current(self) -> None:
        """Draw the curves of the trials of the current search."""
        state = self._table.current.state if self._table.current else None
        self.set_class(state is not None and bool(state.curves), "-drawn")
        if state is not None and state is not self._view.state:
            self._view.state = state
        self.refresh_bindings()  # rows can be sorted

    @on(StudiesTable.Opened)
    def _open(self, event: StudiesTable.Opened) -> None:
        study: ListedStudy = event.row
        if study.state:
            open_screen(self, Screens.SEARCH, study.directory)
        else:
            self.notify(printable(study.problem), title=study.name, severity="warning", markup=False)
