"""Base of widgets that build a page of lines and cache it."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from accel_tui.app_protocol import settings_of
from accel_tui.appearance.colours import Colour
from accel_tui.terminal.pixel_images import PixelImages
from accel_tui.widgets.styled_text import TextSpan
from accel_tui.widgets.visibility import has_shades


class TextPage(Widget, can_focus=True):
    """A page of lines, built for its size when shown, and again after :meth:`rebuild`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "lines--title",
        "lines--faint",
        "lines--head",
        "lines--right",
        "lines--wrong",
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
    }
    """

    _lines_cache: Sequence[Strip] | None = None

    def build_page(self, width: int, height: int) -> Iterable[Strip]:
        """Build at most ``height`` lines."""
        raise NotImplementedError

    def rebuild(self) -> None:
        """Discard the cached lines and repaint."""
        self._lines_cache = None
        self.refresh()

    def on_resize(self) -> None:
        self.rebuild()

    def notify_style_update(self) -> None:
        """Rebuild with the colours of another theme."""
        super().notify_style_update()
        self._lines_cache = None

    def render_line(self, y: int) -> Strip:
        if self._lines_cache is None:
            self._lines_cache = list(self.build_page(self.size.width, self.size.height))
        strip = self._lines_cache[y] if y < len(self._lines_cache) else Strip.blank(0)
        return strip.adjust_cell_length(self.size.width, self.rich_style)

    def line(self, *pieces: TextSpan) -> Strip:
        """A line of text spans."""
        return Strip([Segment(text, self.style_for(name)) for text, name in pieces])

    def style_for(self, name: str = "") -> Style:
        """The style of a component class."""
        return self.get_component_rich_style(f"lines--{name}") if name else self.rich_style

    @property
    def has_colours(self) -> bool:
        """Whether the terminal can show shades of colours."""
        return has_shades(self)

    @property
    def has_blocks(self) -> bool:
        """Whether the terminal can show half blocks in colour."""
        return not self.app.no_color and settings_of(self).glyphs != "ascii"

    @property
    def pixel_images(self) -> PixelImages | None:
        """The pictures that the terminal shows in real pixels; ``None`` if it shows none."""
        has_numbers = self.has_blocks and self.app.console.color_system == "truecolor"
        return getattr(self.app, "pixel_images", None) if has_numbers else None

    @property
    def is_dark(self) -> bool:
        """Whether the theme is dark."""
        return self.app.current_theme.dark

    @property
    def background_rgb(self) -> Colour:
        """The background as RGB; a likely one if it is the terminal's own."""
        background = self.background_colors[1]
        if background.ansi is not None or not isinstance(background, Color):
            return (0, 0, 0) if self.is_dark else (255, 255, 255)
        return background.r, background.g, background.b
