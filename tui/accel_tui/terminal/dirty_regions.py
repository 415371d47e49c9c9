"""Paints only the dirty regions of a screen, and widgets that change often at once.

Textual has each changing widget post a message and wait for a timer.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, takewhile
from types import MappingProxyType

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset, Region
from textual.reactive import Reactive
from textual.strip import Strip
from textual.widget import Widget

from accel_tui.terminal.textual_private import LayoutUpdate, PartialCompositor, PartialScreen

_SIDES = ("top", "right", "bottom", "left")
_DECORATIONS = ("keyline", "hatch", *(f"{line}_{side}" for line in ("border", "outline") for side in _SIDES))
"""CSS rules by which a container shows more than its background."""


class DirtyRegionScreen(PartialScreen):
    """A screen that renders only the widgets that change."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """The focused widget. Textual's reactive repaints the whole screen; here only the two widgets repaint."""

    def __init__(self) -> None:
        self._region_compositor = DirtyRegionCompositor()
        super().__init__(self._region_compositor)
        self._areas: dict[Widget, list[Region]] | None = None

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
            alone = self.can_paint
            for widget, regions in areas.items():
                if alone:
                    self._region_compositor.mark(widget, regions)
                else:
                    Widget.refresh(widget, *regions)
            if alone and areas:
                self.paint()

    def queue_regions(self, widget: Widget, regions: tuple[Region, ...]) -> bool:
        """Queue regions of a widget's content inside :meth:`immediate_paint`; whether they were queued."""
        if self._areas is None:
            return False
        self._areas.setdefault(widget, []).extend(regions)
        return True


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


class DirtyRegionCompositor(PartialCompositor):
    """Renders only the dirty regions, each by the topmost widget there.

    A widget that no other overlaps paints its regions itself: looking for the topmost one took a tenth of the
    processor time of following a run.
    """

    def __init__(self) -> None:
        super().__init__()
        self._marked: list[tuple[Region, Widget]] = []
        self._on_top: dict[Widget, bool] = {}
        self._layout: object = None

    def mark(self, widget: Widget, regions: Iterable[Region]) -> None:
        """Mark regions of a widget's content as dirty; regions of invisible widgets are ignored."""
        if widget not in self.visible_widgets:
            return
        place, clip = self.visible_widgets[widget]
        origin = place.offset + widget.content_offset
        areas = [area for region in regions if (area := region.translate(origin).intersection(clip))]
        if self._is_on_top(widget):
            self._marked += [(area, widget) for area in areas]
        else:
            self.add_dirty(areas)

    def _is_on_top(self, widget: Widget) -> bool:
        """Whether no other widget overlaps this one."""
        if self._layout is not self.visible_widgets:
            self._layout, self._on_top = self.visible_widgets, {}
        if widget not in self._on_top:
            place, clip = self.visible_widgets[widget]
            others = takewhile(lambda other: other[0] is not widget, self.visible_widgets.items())
            seen = place.intersection(clip)
            self._on_top[widget] = not any(seen.overlaps(where.intersection(cut)) for _, (where, cut) in others)
        return self._on_top[widget]

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """Render the whole screen."""
        self._marked.clear()
        return super().render_full_update(simplify)

    def render_regions(self, regions: set[Region]) -> Iterator[tuple[int, int, Strip]]:
        """Row, first column and strip of all that is visible in the regions."""
        places = self.visible_widgets  # rendering may trigger a new layout
        marked, self._marked = self._marked, []
        for marks, widget in [found for found in chain(marked, self._areas(regions)) if found[1] in places]:
            place, clip = places[widget]
            drawn = Region.from_offset(place.offset, widget.outer_size)  # its place may have another size already
            if area := marks.intersection(drawn.intersection(place).intersection(clip)):
                strips = self._strips(widget, area, place.offset)
                yield from ((y, area.x, strip) for y, strip in zip(area.line_range, strips, strict=True))

    def _strips(self, widget: Widget, area: Region, origin: Offset) -> list[Strip]:
        """The strips of a widget in a region; a plain container is not rendered."""
        if _is_plain(widget):
            return [_blank(widget, area.width)] * area.height
        return widget.render_lines(area.translate(-origin))

    def _areas(self, regions: set[Region]) -> Iterator[tuple[Region, Widget]]:
        """Dirty rectangles, each with the one widget that is visible there."""
        dirty = {area for region in regions if (area := region.intersection(self.size.region))}
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
