"""Paints only the dirty regions of a screen.

Textual renders all lines of every widget between the topmost and the lowest dirty region and discards most of the
result, and each changing widget posts a message and waits for a timer. This overrides private methods of Textual's
compositor.
"""

# ruff: noqa: SLF001 (for that reason)

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual._compositor import Compositor, CompositorMap, CompositorUpdate, ReflowResult
from textual.geometry import Offset, Region, Size
from textual.reactive import Reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

TEXTUAL_SUPPORTED = (
    all(hasattr(Compositor, name) for name in ("reflow", "render_partial_update", "visible_widgets"))
    and all(hasattr(Screen, name) for name in ("_refresh_layout", "_compositor_refresh"))
    and all(hasattr(Widget.virtual_size, name) for name in ("_layout", "_repaint"))
)
"""Whether this version of Textual has the private attributes that are used here."""

_SIDES = ("top", "right", "bottom", "left")
_DECORATIONS = ("keyline", "hatch", *(f"{line}_{side}" for line in ("border", "outline") for side in _SIDES))
"""CSS rules by which a container shows more than its background."""


class DirtyRegions(CompositorUpdate):
    """An update of some regions of the screen.

    Attributes:
        strips: Row, column of the first cell, and the strip.
    """

    def __init__(self, strips: list[tuple[int, int, Strip]]) -> None:
        self.strips = strips

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render nothing: apps use :meth:`render_segments`."""
        del console, options
        return ()

    def render_segments(self, console: Console) -> str:
        """Escape sequences that paint the strips, without knowledge of the terminal's content."""
        return "".join(f"{Control.move_to(x, y).segment.text}{strip.render(console)}" for y, x, strip in self.strips)


class DirtyRegionScreen(Screen[None]):
    """A screen that renders only the widgets that change."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """The focused widget. Textual's reactive repaints the whole screen; here only the two widgets repaint."""

    def __init__(self) -> None:
        super().__init__()
        if TEXTUAL_SUPPORTED:
            self._compositor = DirtyRegionCompositor()
        self._areas: dict[Widget, list[Region]] | None = None

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Repaint or lay out; a layout repaints what has moved, while Textual does both for every mount."""
        return super().refresh(*regions, repaint=repaint and not layout, layout=layout, recompose=recompose)

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        with _without_layout_requests():
            super()._refresh_layout(size, scroll)

    def _compositor_refresh(self) -> None:
        # Textual clears the list of dirty widgets after this, so they are painted now.
        self._compositor.update_widgets(self._dirty_widgets)
        super()._compositor_refresh()

    @contextmanager
    def immediate_paint(self) -> Iterator[None]:
        """Paint the changes of every :class:`DirtyRegionWidget` when the block ends, without messages or timers.

        For updates many times a second that change a few digits, where messages would cost more than the painting.
        """
        self._areas = {}
        try:
            yield
        finally:
            areas, self._areas = self._areas, None
            compositor = self._compositor
            batched = self.app._batch_count  # nothing is painted during a batch update
            alone = self.app.screen is self and not (batched or self._layout_required)
            for widget, regions in areas.items():
                if alone and isinstance(compositor, DirtyRegionCompositor):
                    compositor.mark(widget, regions)
                else:
                    Widget.refresh(widget, *regions)
            if alone and areas:
                self._compositor_refresh()

    def queue_regions(self, widget: Widget, regions: tuple[Region, ...]) -> bool:
        """Queue regions of a widget's content inside :meth:`immediate_paint`; whether they were queued."""
        if self._areas is None:
            return False
        self._areas.setdefault(widget, []).extend(regions)
        return True


@contextmanager
def _without_layout_requests() -> Iterator[None]:
    """Suppress the layout and repaint requests that widgets make when a layout resizes them.

    The layout itself paints what has changed, and scrolling requests its own repaint.
    """
    if not TEXTUAL_SUPPORTED:
        yield
        return
    descriptor = Widget.virtual_size
    saved = descriptor._layout, descriptor._repaint
    descriptor._layout = descriptor._repaint = False
    try:
        yield
    finally:
        descriptor._layout, descriptor._repaint = saved


class DirtyRegionWidget(Widget):
    """A widget that repaints only the cells that change.

    It caches the styles of its text instead of its lines.
    """

    _cell_styles: Mapping[str, Style] = MappingProxyType({})

    def resolve_style(self, name: str) -> Style:
        """The style of that name in the current theme."""
        raise NotImplementedError

    def cell_style(self, name: str) -> Style:
        """The style of that name as this terminal shows it, cached."""
        if name not in self._cell_styles:
            segments = [Segment(" ", self.resolve_style(name))]
            for line_filter in self.get_line_filters():
                segments = line_filter.apply(segments, self.background_colors[1])
            self._cell_styles = {**self._cell_styles, name: segments[0].style or Style.null()}
        return self._cell_styles[name]

    def notify_style_update(self) -> None:
        """Clear the cached styles, since the theme may have changed."""
        super().notify_style_update()
        self._cell_styles = {}

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> "DirtyRegionWidget":
        """Refresh as any widget does; regions may be painted immediately."""
        alone = bool(regions) and repaint and not (layout or recompose) and self.is_mounted
        if not (alone and isinstance(self.screen, DirtyRegionScreen) and self.screen.queue_regions(self, regions)):
            super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        return self


class DirtyRegionCompositor(Compositor):
    """Renders only the dirty regions, each by the topmost widget there."""

    def __init__(self) -> None:
        super().__init__()
        self._last_map: CompositorMap = {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay out, and mark what has moved since it was painted.

        Textual compares with the last query instead: a widget queried before it was painted stayed invisible.
        """
        self._full_map = self._last_map
        result = super().reflow(parent, size)
        self._last_map = self._full_map
        return result

    def mark(self, widget: Widget, regions: Iterable[Region]) -> None:
        """Mark regions of a widget's content as dirty; those of invisible widgets are ignored."""
        if widget not in self.visible_widgets:
            return
        place, clip = self.visible_widgets[widget]
        origin = place.offset + widget.content_offset
        self._dirty_regions.update(region.translate(origin).intersection(clip) for region in regions)

    def render_partial_update(self) -> DirtyRegions | None:  # type: ignore[override]
        """Render the dirty regions."""
        places = self.visible_widgets  # rendering may trigger a new layout
        areas = [(area, widget) for area, widget in self._areas() if widget in places]
        strips = [
            (y, area.x, strip)
            for area, widget in areas
            for y, strip in zip(
                area.line_range,
                self._strips(widget, area, places[widget][0].offset),
                strict=True,
            )
        ]
        self._dirty_regions.clear()
        return DirtyRegions(strips) if strips else None

    def _strips(self, widget: Widget, area: Region, origin: Offset) -> list[Strip]:
        """The strips of a widget in a region; a plain container is not rendered."""
        if _is_plain(widget):
            return [_blank(widget, area.width)] * area.height
        return widget.render_lines(area.translate(-origin))

    def _areas(self) -> Iterator[tuple[Region, Widget]]:
        """Dirty rectangles, each with the one widget that is visible there."""
        dirty = {area for region in self._dirty_regions if (area := region.intersection(self.size.region))}
        parts = [part for part in dirty if not any(part != area and area.contains_region(part) for area in dirty)]
        for widget, (place, clip) in self.visible_widgets.items() if parts else ():  # from front to back
            seen = place.intersection(clip)
            rest = []
            for part in parts:
                if area := part.intersection(seen):
                    yield area, widget
                    rest += _subtract(part, area)
                else:
                    rest.append(part)
            parts = rest
            if not parts:
                break


def _is_plain(widget: Widget) -> bool:
    """Whether a container shows nothing but a uniform background."""
    return (
        widget.is_container
        and type(widget).render is Widget.render
        and not any(widget.styles.has_rule(rule) for rule in _DECORATIONS)
    )


def _blank(widget: Widget, width: int) -> Strip:
    """A strip of the widget's background."""
    background = widget.background_colors[1]
    segments = [Segment(" " * width, Style.from_color(bgcolor=background.rich_color))]
    for line_filter in widget.get_line_filters():
        segments = line_filter.apply(segments, background)
    return Strip(segments, width)


def _subtract(whole: Region, part: Region) -> list[Region]:
    """The rectangles above, below, left and right of a part of a region."""
    around = (
        Region.from_corners(whole.x, whole.y, whole.right, part.y),
        Region.from_corners(whole.x, part.bottom, whole.right, whole.bottom),
        Region.from_corners(whole.x, part.y, part.x, part.bottom),
        Region.from_corners(part.right, part.y, whole.right, part.bottom),
    )
    return [region for region in around if region]
