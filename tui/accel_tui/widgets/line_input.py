"""A single-line input that handles keys in the order in which they are typed."""

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Key
from textual.strip import Strip
from textual.widgets import Input

from accel_tui.formatting.text import shorten
from accel_tui.terminal.textual_private import bindings_of


class LineInput(Input):
    """Textual's input inserts letters at once but routes other keys through the app, so that letters overtake them.

    That happens with keys that arrive together, over slow connections or pasted by macros. Long values are cut with an
    ellipsis while the input has no focus.
    """

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y or self.has_focus or cell_len(self.value) <= width:
            return super().render_line(y)
        return Strip([Segment(shorten(self.value, width), self.rich_style)], width)

    async def _on_key(self, event: Key) -> None:
        for binding in () if event.is_printable else bindings_of(self, event.key):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
        await super()._on_key(event)
