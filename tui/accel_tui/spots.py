"""Putting together only those spots of a screen that are to be painted anew.

Textual asks every widget between the topmost spot and the lowest for all its lines, cuts them wherever any widget
begins or ends, and needs few of the pieces. How it keeps its spots is private to it, as what ``painting`` needs is.
"""

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

UNDERSTOOD = all(hasattr(Compositor, name) for name in ("render_partial_update", "visible_widgets"))
"""Whether this version of Textual puts screens together as it is known here."""


class SpotScreen(Screen[None]):
    """A screen that asks only widgets that change for what they show."""

    def __init__(self) -> None:
        super().__init__()
        if UNDERSTOOD:
            self._compositor = SpotCompositor()


class SpotCompositor(Compositor):
    """Asks the widget on top of each spot for just that."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """Put the spots together; Textual's way where one shows several widgets."""
        spots = self._spots()
        if spots is None:
            return super().render_partial_update()
        self._dirty_regions.clear()
        rows: list[dict[int, Strip]] = [{} for _ in range(self.size.height)]
        for spot, widget in spots:
            strips = widget.render_lines(spot.translate(-self.visible_widgets[widget][0].offset))
            for y, strip in zip(spot.line_range, strips, strict=True):
                before = rows[y].get(spot.x)
                if before is None or before.cell_length < strip.cell_length:
                    rows[y][spot.x] = strip
        ends = [[x + strip.cell_length for x, strip in row.items()] for row in rows]
        spans = [(y, x, end) for y, row in enumerate(rows) for x, end in zip(row, ends[y], strict=True)]
        return ChopsUpdate(rows, spans, ends) if spans else None

    def _spots(self) -> list[tuple[Region, Widget]] | None:
        """What is to be painted anew, and the widget on top of it; ``None`` where that is not one widget alone."""
        spots = []
        screen = self.size.region
        for region in self._dirty_regions:
            spot = region.intersection(screen)
            for widget, (place, clip) in self.visible_widgets.items() if spot else ():  # from front to back
                seen = place.intersection(clip)
                if seen.contains_region(spot):
                    spots.append((spot, widget))
                    break
                if seen.overlaps(spot):
                    return None
        return spots
