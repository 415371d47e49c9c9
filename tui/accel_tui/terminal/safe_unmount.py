"""Suppresses errors of widgets that are removed while they are being mounted.

Textual then mounts no children but still sends ``Mount``, whose handler fails to find them; so do callbacks after
refresh, which the screen in front runs by then.
"""

from traceback import walk_tb

from textual._context import active_message_pump
from textual.app import App
from textual.css.query import NoMatches
from textual.message_pump import MessagePump
from textual.widget import MountError, Widget


class SafeUnmountApp(App[None]):
    """Ignores missing widgets in widgets that are being removed."""

    def _handle_exception(self, error: Exception) -> None:
        if isinstance(error, NoMatches | MountError) and self._is_unmounting(self._failing_pump(error)):
            self.log.debug("missed while it was taken away", error)
            return
        super()._handle_exception(error)

    def _failing_pump(self, error: Exception) -> MessagePump:
        """The node that failed; for a deferred callback it is taken from the traceback."""
        pump = active_message_pump.get(self)
        for frame, _ in walk_tb(error.__traceback__):
            if frame.f_code.co_name == "_invoke_and_clear_callbacks":
                pump = frame.f_locals.get("message_pump", pump)
        return pump

    def _is_unmounting(self, pump: MessagePump) -> bool:
        """Whether the node or the app is closing."""
        leaves = pump._closing or (isinstance(pump, Widget) and pump._pruning)  # noqa: SLF001 (as Textual asks)
        return leaves or self._exit or not self._running
