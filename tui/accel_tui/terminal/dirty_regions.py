"""Putting together only those spots of a screen that are to be painted anew.

Textual asks every widget between the topmost spot and the lowest for all its lines, cuts them wherever any widget
begins or ends, and needs few of the pieces; and before, each widget that changes sends its screen a message, which
waits for a timer. How it keeps its spots is private to it, as what ``painting`` needs is.
"""

# ruff: noqa: SLF001 (for that reason)

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, takewhile
from types import MappingProxyType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual._compositor import Compositor, CompositorMap, CompositorUpdate, LayoutUpdate, ReflowResult
from textual.geometry import Offset, Region, Size
from textual.reactive import Reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

UNDERSTOOD = (
    all(hasattr(Compositor, name) for name in ("reflow", "render_partial_update", "visible_widgets"))
    and all(hasattr(Screen, name) for name in ("_refresh_layout", "_compositor_refresh"))
    and all(hasattr(Widget.virtual_size, name) for name in ("_layout", "_repaint"))
)
"""Whether this version of Textual puts screens together as it is known here."""

_SIDES = ("top", "right", "bottom", "left")
_UNEVEN = ("keyline", "hatch", *(f"{line}_{side}" for line in ("border", "outline") for side in _SIDES))
"""What makes a container show more than its background."""


class DirtyRegions(CompositorUpdate):
    """Some spots of a screen.

    Attributes:
        pieces: Row, column of the first cell, and the strip.
    """

    def __init__(self, pieces: list[tuple[int, int, Strip]]) -> None:
        self.pieces = pieces

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Nothing: an app takes updates of the screen by the other way."""
        del console, options
        return ()

    def render_segments(self, console: Console) -> str:
        """What paints them, for who knows nothing of what is on the terminal."""
        return "".join(f"{Control.move_to(x, y).segment.text}{strip.render(console)}" for y, x, strip in self.pieces)


class DirtyRegionScreen(Screen[None]):
    """A screen that asks only widgets that change for what they show."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """What keys go to. Textual's own paints the whole screen anew; here the widgets that change do so."""

    def __init__(self) -> None:
        super().__init__()
        if UNDERSTOOD:
            self._compositor = DirtyRegionCompositor()
        self._spots: dict[Widget, list[Region]] | None = None

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Paint, or lay out, which paints what is elsewhere then; Textual does both for whatever is mounted."""
        return super().refresh(*regions, repaint=repaint and not layout, layout=layout, recompose=recompose)

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        with _settled():
            super()._refresh_layout(size, scroll)

    def _compositor_refresh(self) -> None:
        # All that waits for its turn counts as painted after this, so it has to be painted with the rest.
        self._compositor.update_widgets(self._dirty_widgets)
        super()._compositor_refresh()

    @contextmanager
    def painted_at_once(self) -> Iterator[None]:
        """Paint the changes of all :class:`DirtyRegionWidget` at the end of the block, without a message or a timer.

        For what comes many times a second and changes a few digits: there, those would cost more than the digits.
        """
        self._spots = {}
        try:
            yield
        finally:
            spots, self._spots = self._spots, None
            compositor = self._compositor
            batched = self.app._batch_count  # while anything is, nothing is painted
            alone = self.app.screen is self and not (batched or self._layout_required)
            for widget, regions in spots.items():
                if alone and isinstance(compositor, DirtyRegionCompositor):
                    compositor.mark(widget, regions)
                else:
                    Widget.refresh(widget, *regions)
            if alone and spots:
                self._compositor_refresh()

    def takes(self, widget: Widget, regions: tuple[Region, ...]) -> bool:
        """Take regions of a widget's content to be painted, where they are to be painted at once."""
        if self._spots is None:
            return False
        self._spots.setdefault(widget, []).extend(regions)
        return True


@contextmanager
def _settled() -> Iterator[None]:
    """Have widgets take the sizes that a layout gives them; Textual has each ask for another layout, and for painting.

    What a size changes is painted with the layout as it is, and what scrolls asks for itself.
    """
    if not UNDERSTOOD:
        yield
        return
    given = Widget.virtual_size
    asks = given._layout, given._repaint
    given._layout = given._repaint = False
    try:
        yield
    finally:
        given._layout, given._repaint = asks


class DirtyRegionWidget(Widget):
    """A widget that knows which of its cells change, and gives just those.

    It keeps no lines, as Textual does, but the styles of its pieces.
    """

    _pens: Mapping[str, Style] = MappingProxyType({})

    def look(self, name: str) -> Style:
        """What a style that it calls so is now."""
        raise NotImplementedError

    def pen(self, name: str) -> Style:
        """The same, as this terminal shows it."""
        if name not in self._pens:
            segments = [Segment(" ", self.look(name))]
            for line_filter in self.get_line_filters():
                segments = line_filter.apply(segments, self.background_colors[1])
            self._pens = {**self._pens, name: segments[0].style or Style.null()}
        return self._pens[name]

    def notify_style_update(self) -> None:
        """Forget styles, since the theme may be another."""
        super().notify_style_update()
        self._pens = {}

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> "DirtyRegionWidget":
        """As any widget; but the regions of one that is on screen may be painted at once."""
        alone = bool(regions) and repaint and not (layout or recompose) and self.is_mounted
        if not (alone and isinstance(self.screen, DirtyRegionScreen) and self.screen.takes(self, regions)):
            super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        return self


class DirtyRegionCompositor(Compositor):
    """Asks the widget on top of each spot for just that."""

    def __init__(self) -> None:
        super().__init__()
        self._laid_out: CompositorMap = {}
        self._marked: list[tuple[Region, Widget]] = []
        self._on_top: dict[Widget, bool] = {}
        self._layout: object = None

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay out, and mark what is elsewhere than it was painted.

        Textual compares with what it was asked last. Where a new widget is may have been asked before it was ever
        painted, and the list of a field then stayed unseen.
        """
        self._full_map = self._laid_out
        result = super().reflow(parent, size)
        self._laid_out = self._full_map
        return result

    def mark(self, widget: Widget, regions: Iterable[Region]) -> None:
        """Have parts of a widget's content painted; of one that is not seen they will be when it is."""
        if widget not in self.visible_widgets:
            return
        place, clip = self.visible_widgets[widget]
        origin = place.offset + widget.content_offset
        spots = [spot for region in regions if (spot := region.translate(origin).intersection(clip))]
        if self._is_on_top(widget):
            self._marked += [(spot, widget) for spot in spots]
        else:
            self._dirty_regions.update(spots)

    def _is_on_top(self, widget: Widget) -> bool:
        """Whether no other widget covers any of this one."""
        if self._layout is not self.visible_widgets:
            self._layout, self._on_top = self.visible_widgets, {}
        if widget not in self._on_top:
            place, clip = self.visible_widgets[widget]
            others = takewhile(lambda other: other[0] is not widget, self.visible_widgets.items())
            seen = place.intersection(clip)
            self._on_top[widget] = not any(seen.overlaps(where.intersection(cut)) for _, (where, cut) in others)
        return self._on_top[widget]

    def render_partial_update(self) -> DirtyRegions | None:  # type: ignore[override]
        """Put the spots together."""
        places = self.visible_widgets  # a widget that asks for a place while it is painted may have all laid out anew
        spots = [(spot, widget) for spot, widget in chain(self._marked, self._spots()) if widget in places]
        pieces = [
            (y, spot.x, strip)
            for spot, widget in spots
            for y, strip in zip(
                spot.line_range,
                self._strips(widget, spot, places[widget][0].offset),
                strict=True,
            )
        ]
        self._forget()
        return DirtyRegions(pieces) if pieces else None

    def _strips(self, widget: Widget, spot: Region, origin: Offset) -> list[Strip]:
        """What a widget shows in a spot; containers are not asked for what is between the widgets that they hold."""
        if _is_even(widget):
            return [_blank(widget, spot.width)] * spot.height
        return widget.render_lines(spot.translate(-origin))

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """Put the whole screen together."""
        self._forget()
        return super().render_full_update(simplify)

    def _forget(self) -> None:
        self._dirty_regions.clear()
        self._marked.clear()

    def _spots(self) -> Iterator[tuple[Region, Widget]]:
        """What is to be painted anew, in rectangles that show one widget each, and that widget."""
        dirty = {spot for region in self._dirty_regions if (spot := region.intersection(self.size.region))}
        parts = [part for part in dirty if not any(part != spot and spot.contains_region(part) for spot in dirty)]
        for widget, (place, clip) in self.visible_widgets.items() if parts else ():  # from front to back
            seen = place.intersection(clip)
            rest = []
            for part in parts:
                if spot := part.intersection(seen):
                    yield spot, widget
                    rest += _without(part, spot)
                else:
                    rest.append(part)
            parts = rest
            if not parts:
                break


def _is_even(widget: Widget) -> bool:
    """Whether a widget shows nothing but its background, the same everywhere."""
    return (
        widget.is_container
        and type(widget).render is Widget.render
        and not any(widget.styles.has_rule(rule) for rule in _UNEVEN)
    )


def _blank(widget: Widget, width: int) -> Strip:
    """A widget's background."""
    background = widget.background_colors[1]
    segments = [Segment(" " * width, Style.from_color(bgcolor=background.rich_color))]
    for line_filter in widget.get_line_filters():
        segments = line_filter.apply(segments, background)
    return Strip(segments, width)


def _without(whole: Region, part: Region) -> list[Region]:
    """What is above, below, left and right of a part of a rectangle."""
    around = (
        Region.from_corners(whole.x, whole.y, whole.right, part.y),
        Region.from_corners(whole.x, part.bottom, whole.right, whole.bottom),
        Region.from_corners(whole.x, part.y, part.x, part.bottom),
        Region.from_corners(part.right, part.y, whole.right, part.bottom),
    )
    return [region for region in around if region]
