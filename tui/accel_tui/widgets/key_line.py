"""The line at the bottom of a screen that says its keys."""

from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import Footer
from textual.widgets._footer import FooterKey  # what a footer is made of has no public name


class KeyLine(Footer):
    """The keys that work now; where there is no room for all, those that help tells too are left out."""

    DEFAULT_CSS = """
    KeyLine {
        &.-close { FooterKey.-toggle_theme, FooterKey.-detach { display: none; } }
        &.-closest { FooterKey.-log, FooterKey.-details { display: none; } }
    }
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)

    def compose(self) -> ComposeResult:
        """A key each, of a class named after its action."""
        for key in super().compose():
            if isinstance(key, FooterKey):
                key.add_class("-" + key.action.rpartition(".")[2])
            yield key

    def on_resize(self, event: Resize) -> None:
        """Judge the room."""
        self.set_class(event.size.width < 100, "-close")
        self.set_class(event.size.width < 76, "-closest")
