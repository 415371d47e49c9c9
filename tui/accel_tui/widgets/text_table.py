"""A table as lines of text, with colours; and cells of Textual's tables, which take a string for markup."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text
from textual.content import Content

from accel_engine.text import printable_line


def table_content(header: Sequence[str], rows: Sequence[Sequence[str]], styles: Mapping[str, str]) -> Content:
    """A table with aligned columns.

    Args:
        header: The headings.
        rows: The cells.
        styles: Styles of texts in the last column.
    """
    cells = [[printable_line(text) for text in row] for row in (header, *rows)]
    widths = [max(cell_len(row[index]) for row in cells) for index in range(len(header))]

    def line(row: Sequence[str], style: str = "") -> Content:
        padded = (set_cell_size(text, width) for text, width in zip(row[:-1], widths[:-1], strict=True))
        last = Content.styled(row[-1], style or styles.get(row[-1], ""))
        return Content.styled("  ".join([*padded, ""]), style) + last

    return Content("\n").join([line(cells[0], "bold $text-muted"), *map(line, cells[1:])])


def plain_cell(text: str, style: Style | str = "", *, right: bool = False) -> Text:
    """A cell of a table.

    Args:
        text: Shown as it is.
        style: Of Rich.
        right: Whether it is aligned at the right.
    """
    return Text(text, style, justify="right" if right else "left")
