"""Draws pictures of data in the form and in commands."""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from rich.style import Style
from rich.text import Text
from textual.content import Content

from accel_engine.data_profile.picture import ShownPicture
from accel_engine.text import printable_line
from accel_tui.formatting.text import fit
from accel_tui.widgets.diagnostics.pixels import draw_image, size_within


def draw_pictures(pictures: Sequence[ShownPicture], side: int, *, blocks: bool, dark: bool) -> list[Content]:
    """Pictures side by side, each below its class.

    Args:
        pictures: The pictures.
        side: Cells of the longer side of each.
        blocks: Whether the terminal shows half blocks in colour; else shading characters are drawn.
        dark: Whether the theme is dark.
    """
    columns = [strips_of_picture(picture, side, blocks=blocks, dark=dark) for picture in pictures]
    labels = Text(" ").join(Text(fit(printable_line(picture.label), side)) for picture in pictures)
    rows = [Text(" ").join(cells) for cells in zip_longest(*columns, fillvalue=Text(" " * side))]
    return [Content.from_rich_text(row) for row in (labels, *rows)]


def strips_of_picture(picture: ShownPicture, side: int, *, blocks: bool, dark: bool) -> list[Text]:
    """The lines of a picture, padded to ``side`` cells; see :func:`draw_pictures`."""
    pixels = np.frombuffer(picture.pixels, np.uint8).reshape(picture.shape)
    columns, lines = size_within(pixels, side, side)
    background = (0, 0, 0) if dark else (255, 255, 255)
    drawn = draw_image(pixels, columns, lines, blocks=blocks, dark=dark, background=background, style=Style.null())
    rows = [Text.assemble(*((part.text, part.style or "") for part in strip)) for strip in drawn]
    for row in rows:
        row.pad_right(side - row.cell_len)
    return rows
