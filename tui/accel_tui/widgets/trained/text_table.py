"""A table of texts as lines, for a page that scrolls."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from accel_engine.text import printable_line


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], styles: Mapping[str, str]) -> Content:
    """Rows as columns under a header, each as wide as its longest text.

    Args:
        header: The columns' titles.
        rows: The texts of each row, one per column.
        styles: Colours of texts of the last column.
    """
    cells = [[printable_line(text) for text in row] for row in (header, *rows)]
    widths = [max(cell_len(row[index]) for row in cells) for index in range(len(header))]

    def line(row: Sequence[str], style: str = "") -> Content:
        padded = (set_cell_size(text, width) for text, width in zip(row[:-1], widths[:-1], strict=True))
        last = Content.styled(row[-1], style or styles.get(row[-1], ""))
        return Content.styled("  ".join([*padded, ""]), style) + last

    return Content("\n").join([line(cells[0], "bold $text-muted"), *map(line, cells[1:])])
