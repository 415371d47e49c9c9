"""Base of paragraphs about a run."""

from textual.content import Content
from textual.widgets import Static

from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_view import RunView


class RunText(RunView, Static):
    """Text of a run's state, updated only when it differs.

    Most of it changes rarely, and an update would lay out the whole screen. Hidden text is not updated.
    """

    _inputs: tuple[object, ...] = ()

    def update_view(self) -> None:
        """Update the text if it differs from what is on screen."""
        if not self.in_sight:
            return
        inputs = self.inputs(self.state)
        if inputs and inputs == self._inputs:
            return
        self._inputs = inputs
        content = self.build(self.state)
        if not (isinstance(self.content, Content) and content.is_same(self.content)):
            size, rules = self.size, self.styles.get_rules()
            # A widget has no width before its first layout, and Textual cannot wrap to none.
            resized = self.styles.is_auto_height and (
                not size.width or content.get_height(rules, size.width) != size.height
            )
            self.update(content, layout=resized)

    def inputs(self, state: RunState) -> tuple[object, ...]:
        """All that the text depends on; empty if it also depends on the time."""
        del state
        return ()

    def build(self, state: RunState) -> Content:
        """The text of a state."""
        raise NotImplementedError


def row(left: Content, right: Content, width: int) -> Content:
    """A line with text at both ends; the right one is dropped first, then the left one is cut."""
    if left.cell_length + right.cell_length + 2 > width:
        return left.truncate(max(width, 1), ellipsis=True)
    return left.pad_right(width - left.cell_length - right.cell_length) + right
