"""Putting together only those spots of a screen that are to be painted anew.

Textual asks every widget between the topmost spot and the lowest for all its lines, cuts them wherever any widget
begins or ends, and needs few of the pieces. How it keeps its spots is private to it, as what ``painting`` needs is.
"""

from collections.abc import Iterator

from textual._compositor import ChopsUpdate, Compositor, CompositorMap, ReflowResult
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

UNDERSTOOD = all(hasattr(Compositor, name) for name in ("render_partial_update", "visible_widgets"))
"""Whether this version of Textual puts screens together as it is known here."""


class SpotScreen(Screen[None]):
    """A screen that asks only widgets that change for what they show."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """What keys go to. Textual's own paints the whole screen anew; here the widgets that change do so."""

    def __init__(self) -> None:
        super().__init__()
        if UNDERSTOOD:
            self._compositor = SpotCompositor()


class SpotCompositor(Compositor):
    """Asks the widget on top of each spot for just that."""

    def __init__(self) -> None:
        super().__init__()
        self._laid_out: CompositorMap = {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay out, and mark what is elsewhere than it was painted.

        Textual compares with what it was asked last. Where a new widget is may have been asked before it was ever
        painted, and the list of a field then stayed unseen.
        """
        self._full_map = self._laid_out
        result = super().reflow(parent, size)
        self._laid_out = self._full_map
        return result

    def render_partial_update(self) -> ChopsUpdate | None:
        """Put the spots together."""
        rows: list[dict[int, Strip]] = [{} for _ in range(self.size.height)]
        for spot, widget in self._spots():
            strips = widget.render_lines(spot.translate(-self.visible_widgets[widget][0].offset))
            for y, strip in zip(spot.line_range, strips, strict=True):
                before = rows[y].get(spot.x)
                if before is None or before.cell_length < strip.cell_length:
                    rows[y][spot.x] = strip
        self._dirty_regions.clear()
        ends = [[x + strip.cell_length for x, strip in row.items()] for row in rows]
        spans = [(y, x, end) for y, row in enumerate(rows) for x, end in zip(row, ends[y], strict=True)]
        return ChopsUpdate(rows, spans, ends) if spans else None

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


def _without(whole: Region, part: Region) -> list[Region]:
    """What is above, below, left and right of a part of a rectangle."""
    around = (
        Region.from_corners(whole.x, whole.y, whole.right, part.y),
        Region.from_corners(whole.x, part.bottom, whole.right, whole.bottom),
        Region.from_corners(whole.x, part.y, part.x, part.bottom),
        Region.from_corners(part.right, part.y, whole.right, part.bottom),
    )
    return [region for region in around if region]
