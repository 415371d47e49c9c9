"""A line of text to edit, whose keys take effect in the order in which they came."""

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.events import Key
from textual.strip import Strip
from textual.widgets import Input


class LineInput(Input):
    """Textual's, which inserts a letter at once, while a key that moves or deletes goes by way of the app.

    Of keys that come together, as over a slow link or pasted by a macro, letters would overtake the others.

    What is longer than the line is shown from its beginning while one is elsewhere, and with a sign that it goes on.
    """

    def render_line(self, y: int) -> Strip:
        """A line as wide as the widget."""
        width = self.size.width
        if y or self.has_focus or cell_len(self.value) <= width:
            return super().render_line(y)
        return Strip([Segment(set_cell_size(self.value, width - 1) + "…", self.rich_style)], width)

    async def _on_key(self, event: Key) -> None:
        for binding in () if event.is_printable else self._bindings.key_to_bindings.get(event.key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
        await super()._on_key(event)
