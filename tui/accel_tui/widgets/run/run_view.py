"""What the widgets that show a run have in common."""

from accel_tui.run.state import RunState
from accel_tui.widgets.visibility import VisibilityMixin


class RunView(VisibilityMixin):
    """Something that shows a run, as far as it can be seen.

    A state comes ten times a second, to a dozen of these, most of which say the same as before. It is handed to them by
    a call: a reactive that is bound to the screen's costs as much as all the words of a line.
    """

    state = RunState()
    """What is shown."""

    _width: int | None = None

    def on_show(self) -> None:
        """Say what is known by now."""
        super().on_show()
        self.tell()

    def on_resize(self) -> None:
        """Fit the words to the width."""
        self._width = None
        self.tell()

    @property
    def width(self) -> int:
        """Cells for the words. Textual would look for them in its layout each time."""
        if self._width is None:
            self._width = self.size.width
        return self._width

    def take(self, state: RunState) -> None:
        """Show another state."""
        self.state = state
        self.tell()

    def tell(self) -> None:
        """Show the state as it is now; some of it may go by the clock."""
        raise NotImplementedError
