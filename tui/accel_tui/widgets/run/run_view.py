"""Base of the widgets that show a run."""

from accel_tui.run_state.state import RunState
from accel_tui.widgets.visibility import VisibilityMixin


class RunView(VisibilityMixin):
    """A widget that shows a run's state.

    States come ten times a second to a dozen widgets, most of which do not change. They are set by a method call, since
    a bound reactive would cost as much as drawing a line.
    """

    state = RunState()
    """The state that is shown."""

    _width: int | None = None

    def on_show(self) -> None:
        """Update once visible."""
        super().on_show()
        self.update_view()

    def on_resize(self) -> None:
        """Update for the new width."""
        self._width = None
        self.update_view()

    @property
    def width(self) -> int:
        """Width in cells, cached: Textual would search its layout each time."""
        if self._width is None:
            self._width = self.size.width
        return self._width

    def set_state(self, state: RunState) -> None:
        """Set another state and update."""
        self.state = state
        self.update_view()

    def update_view(self) -> None:
        """Update from the state and the current time."""
        raise NotImplementedError
