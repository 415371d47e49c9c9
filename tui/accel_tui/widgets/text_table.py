"""Tables of texts: as lines with colours, and as a table with a cursor and an order."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from accel_engine.text import printable_line
from accel_tui.formatting.table_columns import Column, SortKey, width_of
from accel_tui.widgets.table import Table


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


_NUMBER = re.compile(r"(-?[\d.,]+(?:e[+-]?\d+)?)([kMGT]?)")
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row of texts.

    Attributes:
        number: Its place among the rows.
        texts: A text per column.
        colour: The theme colour of its texts that are no numbers; empty for none.
    """

    number: int
    texts: tuple[str, ...]
    colour: str = ""


class TextTable(Table[TextRow]):
    """Texts in columns as wide as the texts need; columns of numbers are aligned at the right."""

    opens = False
    sideways = True

    def key_of(self, row: TextRow) -> Hashable:
        """The number of a row."""
        return row.number

    def show_texts(self, titles: Sequence[str], rows: Sequence[TextRow], widest: int) -> None:
        """Show texts.

        Args:
            titles: The headers.
            rows: The texts.
            widest: The most cells of a column.
        """
        self.show_rows(rows, [_text_column(at, title, rows, widest) for at, title in enumerate(titles)])


def _text_column(at: int, title: str, rows: Sequence[TextRow], widest: int) -> Column[TextRow]:
    texts = [row.texts[at] for row in rows]
    is_number = all(_number(text) is not None for text in texts if text not in ("", "-"))

    def key(row: TextRow) -> SortKey | None:
        text = row.texts[at]
        if is_number:
            return None if (value := _number(text)) is None else (value, "")
        return (0.0, text.casefold()) if text else None

    return Column(
        title,
        width_of(title, texts, widest),
        lambda row, _: row.texts[at],
        key,
        right=is_number,
        colour=lambda row: "" if is_number else row.colour,
    )


def _number(text: str) -> float | None:
    if (found := _NUMBER.fullmatch(text)) is None:
        return None
    try:
        return float(found[1].replace(",", "")) * _FACTORS[found[2]]
    except ValueError:
        return None
