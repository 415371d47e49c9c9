"""Layout of the confusion matrix for a size."""

from dataclasses import dataclass

NAME_WIDTH = 16
"""Maximum width of a class name."""

LIST_WIDTH = 24
"""Width of the list next to the matrix."""

HEAT_WIDTH = 2
"""Width of a column without numbers."""

MOST_LINES = 8
"""Maximum lines of a class."""

_SHARE_WIDTH = 7


@dataclass(frozen=True, slots=True)
class ConfusionLayout:
    """Layout of the confusion matrix.

    Attributes:
        name: Width of a class name.
        cell: Width of a column; with :data:`HEAT_WIDTH`, a heat map without numbers.
        columns: Number of columns that fit.
        rows: Number of rows that fit.
        lines: Lines of a row.
    """

    name: int
    cell: int
    columns: int
    rows: int
    lines: int

    @property
    def width(self) -> int:
        """Width of the matrix."""
        return self.name + self.cell * self.columns + _SHARE_WIDTH

    def placed(self, text: str) -> str:
        """Text in a cell: centred in a large cell, else right-aligned."""
        if len(text) >= self.cell:
            return text[: self.cell]
        return f"{text:^{self.cell}}" if self.lines > 1 else f"{text:>{self.cell - 1}} "


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
