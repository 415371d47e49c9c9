"""How a map of classes fits into the room that there is."""

from dataclasses import dataclass

NAME_WIDTH = 16
"""Cells of a class's name beside its row, at most."""

LIST_WIDTH = 24
"""Cells that the list needs beside the map."""

HEAT_WIDTH = 2
"""Cells of a column that has no numbers."""

MOST_LINES = 8
"""Lines that a class gets at most."""

_SHARE_WIDTH = 6


@dataclass(frozen=True, slots=True)
class ConfusionLayout:
    """How a map fits into the room that there is.

    Attributes:
        name: Cells of a name.
        cell: Cells of a class's column; of :data:`HEAT_WIDTH`, shades are shown without numbers.
        columns: How many columns there is room for.
        rows: How many rows.
        lines: Lines of a class's row.
    """

    name: int
    cell: int
    columns: int
    rows: int
    lines: int

    @property
    def width(self) -> int:
        """Cells of all of it."""
        return self.name + self.cell * self.columns + _SHARE_WIDTH

    def placed(self, text: str) -> str:
        """Text in a column: in the middle of a large cell, else to the right."""
        if len(text) >= self.cell:
            return text[: self.cell]
        return f"{text:^{self.cell}}" if self.lines > 1 else f"{text:>{self.cell - 1}} "


def layout_for(names: tuple[str, ...], number: int, width: int, height: int) -> ConfusionLayout:
    """Give every class a column with numbers if there is room, else without, else as many as there is room for.

    Where there is more room, cells grow with it and stay about as wide as they are high.

    Args:
        names: Of the classes.
        number: Cells of the longest number.
        width: Cells that there are.
        height: Lines that there are for classes.
    """
    classes = len(names)
    name = min(max(map(len, names)), NAME_WIDTH, max(width // 4, 4)) + 1
    room = width - name - _SHARE_WIDTH
    cell, lines = max(number, 3) + 1, 1
    if classes * cell > room >= classes * HEAT_WIDTH:
        cell = HEAT_WIDTH
    elif classes * cell <= room:
        widest = (room - LIST_WIDTH - 3) // classes
        lines = max(1, min(height // classes, (widest + 1) // 2, MOST_LINES))
        cell = max(cell, min(widest, max(max(map(len, names)) + 1, 2 * lines + 1)))
    columns, rows = max(1, min(classes, room // cell)), max(1, min(classes, height // lines))
    return ConfusionLayout(name, cell, columns, rows, lines)
