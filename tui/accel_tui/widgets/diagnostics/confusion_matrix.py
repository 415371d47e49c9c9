"""The confusion matrix as a heat map, and the list of the most confused pairs."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.reactive import reactive
from textual.strip import Strip

from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.appearance import colours
from accel_tui.formatting.bars import bar
from accel_tui.formatting.text import fit, shorten
from accel_tui.widgets.diagnostics.class_table import Confusion, confused, pair_name
from accel_tui.widgets.text_page import TextPage

_ROOM_FOR_BOTH = 76


@dataclass(frozen=True, slots=True)
class _Paint:
    """Cached inputs of a cell's style."""

    plain: Style
    coloured: bool
    background_rgb: colours.Colour
    dark: bool


NAME_WIDTH = 16
"""Maximum width of a class name."""


_LEAST_BAR, _WIDEST_BAR = 4, 24  # cells of a bar of the list

LIST_WIDTH = 24
"""Width of the list next to the matrix."""


HEAT_WIDTH = 2
"""Width of a column without numbers."""


MAX_LINES = 8
"""Maximum lines of a class."""


_SHARE_WIDTH = 7


@dataclass(frozen=True, slots=True)
class ConfusionLayout:
    """Layout of the confusion matrix."""

    name: int
    """Width of a class name."""
    cell: int
    """Width of a column; with :data:`HEAT_WIDTH`, a heat map without numbers."""
    columns: int
    """Number of columns that fit."""
    rows: int
    """Number of rows that fit."""
    lines: int
    """Lines of a row."""

    @property
    def width(self) -> int:
        """Width of the matrix."""
        return self.name + self.cell * self.columns + _SHARE_WIDTH

    def placed(self, text: str) -> str:
        """Text in a cell: centred in a large cell, else right-aligned."""
        room = self.cell - cell_len(text)
        if room <= 0:
            return set_cell_size(text, self.cell)
        left = room // 2 if self.lines > 1 else room - 1
        return f"{' ' * left}{text}{' ' * (room - left)}"


def layout_for(names: tuple[str, ...], number: int, width: int, height: int) -> ConfusionLayout:
    """The layout with numbers if all classes fit, else without, else with as many classes as fit.

    With more room, cells grow and stay about as wide as they are high.

    Args:
        names: The classes.
        number: Width of the longest number.
        width: In cells.
        height: Lines of all classes.
    """
    classes = len(names)
    name = min(max(map(cell_len, names)), NAME_WIDTH, max(width // 4, 4)) + 1
    available = width - name - _SHARE_WIDTH
    cell, lines = max(number, 3) + 1, 1
    if classes * cell > available >= classes * HEAT_WIDTH:
        cell = HEAT_WIDTH
    elif classes * cell <= available:
        widest = (available - LIST_WIDTH - 3) // classes
        lines = max(1, min(height // classes, (widest + 1) // 2, MAX_LINES))
        cell = max(cell, min(widest, max(max(map(cell_len, names)) + 1, 2 * lines + 1)))
    columns, rows = max(1, min(classes, available // cell)), max(1, min(classes, height // lines))
    return ConfusionLayout(name, cell, columns, rows, lines)


class ConfusionMatrix(TextPage):
    """The matrix with a cursor whose cell is described, and the list if there is room."""

    BINDING_GROUP_TITLE = "Confusion matrix"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1, 0)", id="confusion.up", tooltip="Previous true class"),
        Binding("down", "go(1, 0)", id="confusion.down", tooltip="Next true class"),
        Binding("left", "go(0, -1)", id="confusion.left", tooltip="Previous predicted class"),
        Binding("right", "go(0, 1)", id="confusion.right", tooltip="Next predicted class"),
        Binding("pageup", "go(-10, 0)", id="confusion.page-up", tooltip="Ten classes up"),
        Binding("pagedown", "go(10, 0)", id="confusion.page-down", tooltip="Ten classes down"),
        Binding("shift+left", "go(0, -10)", id="confusion.far-left", tooltip="Ten classes left"),
        Binding("shift+right", "go(0, 10)", id="confusion.far-right", tooltip="Ten classes right"),
        Binding(
            "percent_sign",
            "shares",
            "Percent",
            id="confusion.percent",
            tooltip="Show percent of the true class, or counts",
        ),
        Binding(
            "ampersand", "list", "List", id="confusion.list", tooltip="Show only the most confused pairs, or the matrix"
        ),
    ]

    confusion: reactive[Confusion | None] = reactive(None, repaint=False)
    """The matrix of the last validation."""

    step: reactive[int] = reactive(0, repaint=False)
    """The step of the validation."""

    cursor: reactive[tuple[int, int]] = reactive((0, 0), repaint=False)
    """True class and predicted class."""

    show_percent: reactive[bool] = reactive(False, repaint=False)
    """Whether cells show percentages of their row instead of counts."""

    list_only: reactive[bool] = reactive(False, repaint=False)
    """Whether only the list is shown."""

    _first = (0, 0)  # first visible row and column
    _layout_shown: ConfusionLayout | None = None

    def watch_confusion(self, before: Confusion | None, confusion: Confusion | None) -> None:
        """Move to the most confused pair, unless the classes are the same as before."""
        if confusion is not None and (before is None or before.names != confusion.names):
            pairs = confused(confusion)
            self.cursor = pairs[0][:2] if pairs else (0, 0)
        self.refresh_bindings()
        self.rebuild()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer percentages and the list only where there is a matrix."""
        return action not in ("shares", "list") or self.confusion is not None

    def watch_cursor(self) -> None:
        self.rebuild()

    watch_show_percent = watch_list_only = watch_cursor

    def action_go(self, down: int, right: int) -> None:
        if self.confusion:
            last = max(len(self.confusion.counts) - 1, 0)
            row, column = self.cursor
            self.cursor = min(max(row + down, 0), last), min(max(column + right, 0), last)

    def action_shares(self) -> None:
        self.show_percent = not self.show_percent

    def action_list(self) -> None:
        self.list_only = not self.list_only

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Move down, or right with shift."""
        self.action_go(*((0, 3) if event.shift else (3, 0)))

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Move up, or left with shift."""
        self.action_go(*((0, -3) if event.shift else (-3, 0)))

    def on_click(self, event: Click) -> None:
        found = self._layout_shown
        if (
            found
            and not self.list_only
            and event.y >= 2
            and found.name <= event.x < found.name + found.cell * found.columns
        ):
            row, column = (event.y - 2) // found.lines, (event.x - found.name) // found.cell
            if row < found.rows:
                self.cursor = self._first[0] + row, self._first[1] + column

    def build_page(self, width: int, height: int) -> Iterator[Strip]:
        """Build the summary, column heads, rows, and the description of the cursor's cell."""
        confusion = self.confusion
        if confusion is None or not confusion.counts.size or height < 4:
            return
        counts = confusion.counts
        right, total = int(np.trace(counts)), int(counts.sum())
        words = (
            f"{confusion.noun} accuracy {numbers.metric(right / max(total, 1))} "
            f"({numbers.count(right)} of {numbers.count(total)}) after step {self.step:,}"
        ).lstrip()
        yield self.line((words, "title"), ("   rows true, columns predicted", "faint"))
        if self.list_only:
            yield from self._list(confusion, width, height - 1)
            return
        number = 4 if self.show_percent else len(numbers.compact(int(counts.max())))
        shown = layout_for(confusion.names, number, width, height - 3)
        if shown.columns < len(counts) and width >= _ROOM_FOR_BOTH:  # a partial matrix is no overview
            shown = layout_for(confusion.names, number, width - LIST_WIDTH - 3, height - 3)
        self._layout_shown = shown
        rows, columns = self._visible(shown)
        paint = _Paint(self.rich_style, self.has_colours, self.background_rgb, self.is_dark)
        pair_list = list(self._list(confusion, width - shown.width - 3, height - 2))
        if width - shown.width - 3 < LIST_WIDTH:
            pair_list = []
        lines = [
            self._heads(confusion, shown, columns),
            *(line for row in rows for line in self._row(confusion, shown, row, columns, paint)),
        ]
        for index in range(height - 2):
            line = lines[index] if index < len(lines) else Strip.blank(0)
            if index < len(pair_list):
                line = Strip.join([line.adjust_cell_length(shown.width + 3, self.rich_style), pair_list[index]])
            yield line
        yield self._words(confusion, shown)

    def _visible(self, shown: ConfusionLayout) -> tuple[range, range]:
        """The visible rows and columns, which include the cursor."""
        first = []
        for index, before, visible in zip(self.cursor, self._first, (shown.rows, shown.columns), strict=True):
            last = max(len(self.confusion.names) - visible, 0) if self.confusion else 0
            first.append(min(max(before, index - visible + 1), index, last))
        self._first = (first[0], first[1])
        return range(first[0], first[0] + shown.rows), range(first[1], first[1] + shown.columns)

    def _heads(self, confusion: Confusion, shown: ConfusionLayout, columns: range) -> Strip:
        if shown.cell == HEAT_WIDTH:
            name = fit(confusion.names[self.cursor[1]], shown.cell * shown.columns)
            return self.line((" " * shown.name, ""), (name, "faint"), (" recall", "faint"))
        heads = [shown.placed(shorten(confusion.names[column], shown.cell - 1)) for column in columns]
        pieces = [
            (head, "head" if column == self.cursor[1] else "faint") for head, column in zip(heads, columns, strict=True)
        ]
        return self.line((" " * shown.name, ""), *pieces, (" recall", "faint"))

    def _row(
        self, confusion: Confusion, shown: ConfusionLayout, row: int, columns: range, paint: "_Paint"
    ) -> list[Strip]:
        """The lines of a class; the middle one has the text."""
        counts = confusion.counts[row]
        total = int(counts.sum())
        name = f"{fit(confusion.names[row], shown.name - 1, right=True)} "
        here = counts[columns.start : columns.stop].tolist()
        label = Segment(name, self.style_for("head" if row == self.cursor[0] else "faint"))
        cells = [
            self._cell(count, total, shown, (row, column), paint) for column, count in zip(columns, here, strict=True)
        ]
        share = f"{percent(counts[row] / total, 0):>6} " if total else "     - "
        text_line = Strip([label, *cells, Segment(share, self.style_for("faint"))])
        if shown.lines == 1:
            return [text_line]
        padding = [Segment(" " * shown.cell, cell.style) for cell in cells]
        blank_line = Strip(
            [Segment(" " * shown.name, self.rich_style), *padding, Segment(" " * len(share), self.rich_style)]
        )
        above = (shown.lines - 1) // 2
        return [*[blank_line] * above, text_line, *[blank_line] * (shown.lines - 1 - above)]

    def _cell(self, count: int, total: int, shown: ConfusionLayout, cell: tuple[int, int], paint: "_Paint") -> Segment:
        share = count / total if total else 0.0
        text = ""
        if shown.cell > HEAT_WIDTH:
            text = "" if not count else percent(share, 0) if self.show_percent else numbers.compact(count)
        elif not paint.coloured:
            text = colours.shading_character(share) * HEAT_WIDTH
        if cell == self.cursor and not text.strip():
            text = "[]"
        text = shown.placed(text)
        right = cell[0] == cell[1]
        here = cell == self.cursor
        if not paint.coloured:
            return Segment(text, paint.plain + Style(bold=right, reverse=here))
        return Segment(text, _style(round(share, 2) or share, paint, right=right, here=here))

    def _words(self, confusion: Confusion, shown: ConfusionLayout) -> Strip:
        row, column = self.cursor
        count, total = int(confusion.counts[row, column]), int(confusion.counts[row].sum())
        cell_text = f"true {confusion.names[row]}, predicted {confusion.names[column]}: {count:,} of {total:,}"
        share = f" ({percent(count / total)})" if count else ""
        classes = len(confusion.names)
        visible_range = ""
        if shown.rows < classes or shown.columns < classes:
            rows = f"{self._first[0] + 1}-{self._first[0] + shown.rows}"
            columns = f"{self._first[1] + 1}-{self._first[1] + shown.columns}"
            visible_range = f" rows {rows}, cols {columns} of {classes:,}"
        return self.line((cell_text + share, "right" if row == column else "wrong"), (visible_range, "faint"))

    def _list(self, confusion: Confusion, width: int, height: int) -> Iterator[Strip]:
        pairs = confused(confusion, height - 1)
        yield self.line(("Most confused" if pairs else "No errors", "head"))
        if not pairs:
            return
        longest = max(cell_len(pair_name(confusion, pair)) for pair in pairs)
        name_width = max(min(longest, width - 14), 8)
        room = min(width - name_width - 14, _WIDEST_BAR)
        for pair in pairs:
            name = fit(pair_name(confusion, pair), name_width)
            drawn = f"  {bar(pair[2] / pairs[0][2], room)}" if room >= _LEAST_BAR else ""
            yield self.line(
                (name, ""), (f"{pair[2]:>6,}", "wrong"), (f"{percent(pair[3]):>6}", "faint"), (drawn, "wrong")
            )


@lru_cache(1 << 12)
def _style(share: float, paint: _Paint, *, right: bool, here: bool) -> Style:
    colour = colours.scale_colour(
        share, colours.CORRECT if right else colours.INCORRECT, paint.background_rgb, dark=paint.dark
    )
    if here:
        colour = colours.contrasting_text_colour(paint.background_rgb)
    return Style(
        color=RichColor.from_rgb(*colours.contrasting_text_colour(colour)),
        bgcolor=RichColor.from_rgb(*colour),
        bold=here,
    )
