"""Layout of charts, how many fit and where they are; and the bar above them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import ClassVar

from textual.containers import Container
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from accel_tui.widgets.list_keys import custom_keys

MIN_SIZE = Size(36, 6)
"""Minimum size of a readable chart."""

COMFORTABLE = Size(72, 9)
"""Minimum size of charts that are shown by default."""

_MIN_CHARTS = 2
_LARGE_CHARTS = 2  # at the top of a single column, above pairs of smaller charts
_LARGE = 1.4  # height of a large chart, as a multiple of a small one's
_ASPECT = 5.5  # best ratio of width to height, in cells
_GAP = 2  # columns between two charts
_TALL = 12  # rows from which a chart gets an empty row below


def max_charts(size: Size, min_size: Size) -> int:
    """Maximum number of charts of a size that fit; at least one."""
    return _most(size.width, min_size.width) * _most(size.height, min_size.height)


def default_charts(size: Size) -> int:
    """Number of charts that are shown unless the user selects some: as many as are comfortable, and two if they fit."""
    rows = _most(size.height, COMFORTABLE.height)
    if _most(size.width, COMFORTABLE.width) == 1 and _has_pairs(rows, size):
        return _LARGE_CHARTS + 2 * (rows - _LARGE_CHARTS)
    return max(min(max_charts(size, MIN_SIZE), _MIN_CHARTS), max_charts(size, COMFORTABLE))


def chart_regions(count: int, size: Size, first_share: float = 0.0) -> list[Region]:
    """Regions of charts that fill the size, in rows from left to right; the last row may have fewer, wider ones.

    Where charts would be below one another in a single column, only the first two are as wide, and the others in pairs.

    Args:
        count: Number of charts.
        size: Of all.
        first_share: Share of the height for the first one, where both parts have room for a chart; 0 for none.
    """
    if not count:
        return []
    height = round(first_share * size.height)
    if first_share and count > 1 and size.height - height >= MIN_SIZE.height:
        others = chart_regions(count - 1, Size(size.width, size.height - height))
        return [Region(0, 0, size.width, height), *(region.translate((0, height)) for region in others)]
    widest = range(1, min(count, _most(size.width, MIN_SIZE.width)) + 1)
    columns = min(widest, key=lambda columns: _distance(size, columns, math.ceil(count / columns)))
    if columns == 1 and _has_pairs(count, size):
        pairs, odd = divmod(count - _LARGE_CHARTS, 2)
        in_row, heights = (
            [*[1] * _LARGE_CHARTS, *[2] * pairs, *[1] * odd],
            [_LARGE] * _LARGE_CHARTS + [1.0] * (pairs + odd),
        )
    else:
        whole, rest = divmod(count, columns)
        in_row = [*[columns] * whole, *[rest] * bool(rest)]
        heights = [1.0] * len(in_row)
    regions = []
    for row, (y, below) in enumerate(_parts(size.height, heights)):
        gap = int(row < len(in_row) - 1 and below - y >= _TALL)
        for x, right in _parts(size.width + _GAP, [1.0] * in_row[row]):
            regions.append(Region(x, y, max(0, right - x - _GAP), below - y - gap))
    return regions


def _has_pairs(count: int, size: Size) -> bool:
    """Whether charts of a single column are in pairs from the third one on."""
    return count > _LARGE_CHARTS and size.width >= 2 * MIN_SIZE.width


class GridLayout(Layout):
    """Layout that chooses the number of columns by the shape of the charts."""

    name = "charts"

    def arrange(self, parent: Widget, children: Sequence[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        """Place the children."""
        parent.pre_layout(self)
        share = parent.first_share if isinstance(parent, ChartGrid) else 0.0
        return [
            WidgetPlacement(region, region.reset_offset.offset, child.styles.margin, child)
            for region, child in zip(chart_regions(len(children), size, share), children, strict=True)
        ]


_LAYOUT = GridLayout()


class ChartGrid(Container):
    """Container that gives all of its room to the displayed charts."""

    DEFAULT_CSS = "ChartGrid { width: 1fr; height: 1fr; }"
    first_share: ClassVar[float] = 0.0
    """Share of the height for the first chart above all others; 0 for a chart like the others."""

    @property
    def layout(self) -> Layout:
        """Always :class:`GridLayout`; Textual's layouts ignore the shape of the children."""
        return _LAYOUT


def _most(available: int, size: int) -> int:
    return max(1, available // size)


def _distance(size: Size, columns: int, rows: int) -> float:
    """How far charts are from the best shape."""
    if rows > _most(size.height, MIN_SIZE.height):
        return math.inf
    return abs(math.log(max(size.width, 1) / columns / (max(size.height, 1) / rows) / _ASPECT))


def _parts(length: int, shares: Sequence[float]) -> list[tuple[int, int]]:
    """Divide a length by shares: start and end of each part."""
    cuts = [round(length * part / sum(shares)) for part in accumulate(shares, initial=0)]
    return list(pairwise(cuts))


@dataclass(frozen=True, slots=True)
class BarItem:
    """An item of the bar."""

    text: str
    action: str = ""
    """The action of a click; empty for plain text."""
    key: str = ""
    """The action's key, as shown."""
    is_active: bool = False
    """Whether its mode is on."""
    drop_first: bool = False
    """Whether it is dropped first if there is no room."""

    @property
    def label(self) -> Content:
        """Key and text with their styles."""
        key = (f"{self.key} ", "$accent") if self.key else ""
        style = "bold reverse" if self.is_active else "" if self.action or not self.text else "$text-muted"
        return (
            Content.assemble(key, (f" {self.text} ", style))
            if self.is_active
            else Content.assemble(key, (f"{self.text} ", style))
        )


class ChartBar(Widget):
    """Shows modes and keys of the charts; a click runs the action."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "ChartBar { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }"

    _rebound: Mapping[str, str] | None = None

    items: reactive[tuple[BarItem, ...]] = reactive(())
    """The items from left to right."""

    @dataclass
    class Clicked(Message):
        """An item was clicked."""

        action: str

    def validate_items(self, items: tuple[BarItem, ...]) -> tuple[BarItem, ...]:
        """Show the user's custom keys."""
        if self._rebound is None and self.is_attached and isinstance(self.parent, Widget):
            self._rebound = custom_keys(self.parent)
        keys = self._rebound
        return tuple(replace(item, key=keys.get(item.action, item.key)) for item in items) if keys else items

    def render(self) -> Content:
        """The labels of the shown items."""
        return Content(" ").join(item.label for item in self.shown)

    @property
    def shown(self) -> tuple[BarItem, ...]:
        """The items that fit."""
        items = self.items
        for droppable in [item for item in reversed(items) if item.drop_first]:
            if sum(item.label.cell_length + 1 for item in items) <= self.size.width + 1:
                break
            items = tuple(item for item in items if item is not droppable)
        return items

    def on_click(self, event: Click) -> None:
        end = 0
        for item in self.shown:
            start, end = end, end + item.label.cell_length + 1
            if start <= event.x < end - 1 and item.action:
                self.post_message(self.Clicked(item.action))
                return
