"""An app that can be left, and a widget that can be taken away, at any moment: also while it is being mounted.

Textual then mounts no children, but sends the widget its ``Mount`` all the same, and what the widget does there with
its children fails. So does what a screen put off until all is painted, which the screen in front by then calls. That is
nothing to tell the user, who did not want it any more.
"""

from traceback import walk_tb

from textual._context import active_message_pump
from textual.app import App
from textual.css.query import NoMatches
from textual.message_pump import MessagePump
from textual.widget import MountError, Widget


class SafeUnmountApp(App[None]):
    """Takes no notice of what a widget misses that is being taken away."""

    def _handle_exception(self, error: Exception) -> None:
        if isinstance(error, NoMatches | MountError) and self._is_taken_away(self._whose(error)):
            self.log.debug("missed while it was taken away", error)
            return
        super()._handle_exception(error)

    def _whose(self, error: Exception) -> MessagePump:
        """What failed; of what was put off, Textual's screen has forgotten it by now."""
        pump = active_message_pump.get(self)
        for frame, _ in walk_tb(error.__traceback__):
            if frame.f_code.co_name == "_invoke_and_clear_callbacks":
                pump = frame.f_locals.get("message_pump", pump)
        return pump

    def _is_taken_away(self, pump: MessagePump) -> bool:
        """Whether no more is to come of it."""
        leaves = pump._closing or (isinstance(pump, Widget) and pump._pruning)  # noqa: SLF001 (as Textual asks)
        return leaves or self._exit or not self._running
