"""An app whose screenshots have a place, and which says where they are, or why there are none."""

from pathlib import Path

from platformdirs import user_downloads_path
from textual import events

from accel_engine.errors import format_error
from accel_tui.terminal.incremental_app import IncrementalApp


class ScreenshotApp(IncrementalApp):
    """Saves screenshots in the folder of downloads if there is one, else in the current one.

    Textual takes the former without looking, keeps failures to itself, and tells of success with markup.
    """

    def deliver_screenshot(
        self, filename: str | None = None, path: str | None = None, time_format: str | None = None
    ) -> str | None:
        """Save a picture of the screen, or send it to the browser; see Textual's own."""
        downloads = user_downloads_path()
        return super().deliver_screenshot(
            filename, path or str(downloads if downloads.is_dir() else Path.cwd()), time_format
        )

    def on_delivery_complete(self, event: events.DeliveryComplete) -> None:
        """Tell where the picture is."""
        event.prevent_default()
        self.notify("sent to the browser" if event.path is None else str(event.path), title="Screenshot saved")

    def on_delivery_failed(self, event: events.DeliveryFailed) -> None:
        """Tell why there is no picture."""
        event.prevent_default()
        self.notify(format_error(event.exception), title="Screenshot not saved", severity="error")
