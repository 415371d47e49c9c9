"""An app whose keys and clicks wait until the screen that they are for is mounted."""

from textual import events

from accel_tui.terminal.incremental_app import IncrementalApp


class EarlyInputApp(IncrementalApp):
    """Keeps what is typed while a screen is being composed.

    Textual would run the priority bindings of a screen before it has any widgets, and give the other keys to none.
    """

    async def on_event(self, event: events.Event) -> None:
        """Let a key or a click wait for the screen."""
        screens = self.screen_stack
        if isinstance(event, events.InputEvent) and screens and not screens[-1].is_mounted:
            screens[-1].call_later(self.post_message, event)
        else:
            await super().on_event(event)
