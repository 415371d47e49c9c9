"""What the text widgets of a run have in common."""

from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from accel_tui.state import RunState


class RunText(Static):
    """Text that is made from a run's state, and set anew only when it reads differently.

    A state comes ten times a second; most of what is said of it changes seldom, and a new layout
    of the screen for the same words would be work for nothing. So would be words while they are hidden.
    """

    state: reactive[RunState] = reactive(RunState(), repaint=False, init=False)
    """What is told; bind it with ``data_bind``."""

    _hidden = True
    _parts: tuple[object, ...] = ()

    def on_show(self) -> None:
        """Say what is known by now."""
        self._hidden = False
        self.tell()

    def on_hide(self) -> None:
        """Say no more."""
        self._hidden = True

    def on_resize(self) -> None:
        """Fit the words to the width."""
        self.tell()

    def watch_state(self) -> None:
        """Say what is new."""
        self.tell()

    def tell(self) -> None:
        """Show the state in words, if they are others than those on screen."""
        if self._hidden:
            return
        parts = self.parts(self.state)
        if parts and parts == self._parts:
            return
        self._parts = parts
        if (words := self.words(self.state)) != self.content:
            self.update(words, layout=self.styles.is_auto_height)

    def parts(self, state: RunState) -> tuple[object, ...]:
        """All that the words are made of; nothing where they go by the clock, too."""
        del state
        return ()

    def words(self, state: RunState) -> Content:
        """Put the state into words."""
        raise NotImplementedError


def row(left: Content, right: Content, width: int) -> Content:
    """A line with a part at either end; the right one gives way, then the left one is cut."""
    if left.cell_length + right.cell_length + 2 > width:
        return left.truncate(max(width, 1), ellipsis=True)
    return left.pad_right(width - left.cell_length - right.cell_length) + right
