"""A line of text to edit, whose keys take effect in the order in which they came."""

from textual.events import Key
from textual.widgets import Input


class LineInput(Input):
    """Textual's, which inserts a letter at once, while a key that moves or deletes goes by way of the app.

    Of keys that come together, as over a slow link or pasted by a macro, letters would overtake the others.
    """

    async def _on_key(self, event: Key) -> None:
        for binding in () if event.is_printable else self._bindings.key_to_bindings.get(event.key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
        await super()._on_key(event)
