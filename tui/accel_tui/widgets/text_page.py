"""What widgets have in common that put a page together line by line and keep it until it has to be another."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from accel_tui.appearance.colour_scales import Colour

if TYPE_CHECKING:
    from accel_tui.app import AccelApp

Piece = tuple[str, str]
"""Text, and the name of the component that it is styled as; of no component when empty."""


class TextPage(Widget, can_focus=True):
    """A page of lines, made when it is shown, for its size, and anew whenever :meth:`again` is called."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "lines--title",
        "lines--faint",
        "lines--head",
        "lines--right",
        "lines--wrong",
        "lines--cursor",
    }

    DEFAULT_CSS = """
    TextPage {
        height: 1fr;
        & > .lines--title { color: $foreground; }
        &:focus > .lines--title { color: $accent; text-style: bold; }
        & > .lines--faint { color: $text-muted; }
        & > .lines--head { color: $primary; text-style: bold; }
        & > .lines--right { color: $success; }
        & > .lines--wrong { color: $error; }
        & > .lines--cursor { color: $block-cursor-foreground; background: $block-cursor-background; }
    }
    """

    _page: Sequence[Strip] | None = None

    def page(self, width: int, height: int) -> Iterable[Strip]:
        """Make the lines, at most ``height`` of them."""
        raise NotImplementedError

    def again(self) -> None:
        """Make the page anew."""
        self._page = None
        self.refresh()

    def on_resize(self) -> None:
        """Fit the page."""
        self.again()

    def notify_style_update(self) -> None:
        """Take the colours of another theme."""
        super().notify_style_update()
        self._page = None

    def render_line(self, y: int) -> Strip:
        """A line of the page."""
        if self._page is None:
            self._page = list(self.page(self.size.width, self.size.height))
        strip = self._page[y] if y < len(self._page) else Strip.blank(0)
        return strip.adjust_cell_length(self.size.width, self.rich_style)

    def line(self, *pieces: Piece) -> Strip:
        """A line of text."""
        return Strip([Segment(text, self.styled(name)) for text, name in pieces])

    def styled(self, name: str = "") -> Style:
        """The style of a component."""
        return self.get_component_rich_style(f"lines--{name}") if name else self.rich_style

    @property
    def has_colours(self) -> bool:
        """Whether shades of colours can be told apart on this terminal."""
        return not self.app.no_color and self.app.console.color_system != "standard"

    @property
    def has_blocks(self) -> bool:
        """Whether half a cell can have a colour of its own on this terminal."""
        return not self.app.no_color and cast("AccelApp", self.app).settings.glyphs != "ascii"

    @property
    def is_dark(self) -> bool:
        """Whether the theme is."""
        return self.app.current_theme.dark

    @property
    def ground(self) -> Colour:
        """The colour behind all; a likely one where it is the terminal's own."""
        background = self.background_colors[1]
        if background.ansi is not None or not isinstance(background, Color):
            return (0, 0, 0) if self.is_dark else (255, 255, 255)
        return background.r, background.g, background.b


def fitted(text: str, width: int) -> str:
    """Text of just so many cells, cut with an ellipsis or filled up with blanks."""
    return text.ljust(width) if len(text) <= width else text[: max(width - 1, 0)] + "…"[:width]
