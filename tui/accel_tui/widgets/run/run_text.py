"""Paragraphs about a run."""

from textual.content import Content
from textual.widgets import Static

from accel_tui.run.state import RunState
from accel_tui.widgets.run.run_view import RunView


class RunText(RunView, Static):
    """Text that is made from a run's state, and set anew only when it reads differently.

    Most of what is said of a state changes seldom, and a new layout of the screen for as many lines would be work
    for nothing. So would be words while they are hidden.
    """

    _parts: tuple[object, ...] = ()

    def tell(self) -> None:
        """Show the state in words, if they are others than those on screen."""
        if not self.in_sight:
            return
        parts = self.parts(self.state)
        if parts and parts == self._parts:
            return
        self._parts = parts
        words = self.words(self.state)
        if not (isinstance(self.content, Content) and words.is_same(self.content)):
            size, rules = self.size, self.styles.get_rules()
            # Shown before it has room, it has no width, and Textual cannot wrap words to none.
            resized = self.styles.is_auto_height and (
                not size.width or words.get_height(rules, size.width) != size.height
            )
            self.update(words, layout=resized)

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
