"""Distributions, shares and pictures of data, the same in the form and in commands."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

import numpy as np
from rich.style import Style
from rich.text import Text
from textual.content import Content

from accel_engine.data_profile.picture import ColumnValues, ShownPicture, ShownSound
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.text import fit, sparkline


def histogram(values: ColumnValues, width: int = 0) -> str:
    """A block of each bin, of which empty ones are blank.

    Args:
        values: The values of a column.
        width: Number of blocks; as many as there are bins if it is 0. Several bins then share a block.
    """
    counts = values.counts
    if width and len(counts) > width:
        edges = [round(part * len(counts) / width) for part in range(width + 1)]
        counts = tuple(sum(counts[first:stop]) for first, stop in pairwise(edges))
    drawn = sparkline([count or None for count in counts], len(counts), 0, max(counts, default=1))
    return drawn.ljust(width)


def of_total(count: int, total: int) -> str:
    """How many of how many examples: ``12 of 500 examples``."""
    return f"{numbers.count(count)} of {numbers.counted(total, 'example')}"


def share_bars(
    names: Sequence[str], counts: Sequence[int], width: int, most: int, block: str = "█"
) -> Iterator[tuple[str, int, str]]:
    """A name, a count and a bar for each class; of many classes, for the largest and the smallest.

    Args:
        names: The classes.
        counts: Their numbers of examples.
        width: Cells of the longest bar.
        block: What the bars consist of.
        most: The most lines; a line without a count tells how many classes are left out.
    """
    classes = list(zip(names, counts, strict=False))
    gap = 0
    if len(classes) > most:
        classes.sort(key=lambda each: -each[1])
        largest, smallest = most * 3 // 5, most // 4
        gap = len(classes) - largest - smallest
        classes = [*classes[:largest], (f"({gap} more)", 0), *classes[-smallest:]]
    longest = max(*counts, 1)
    for name, count in classes:
        yield name, count, block * round(width * count / longest)


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
    from accel_tui.widgets.diagnostics.pixels import draw_image, size_within

    pixels = np.frombuffer(picture.pixels, np.uint8).reshape(picture.shape)
    columns, lines = size_within(pixels, side, side)
    background = (0, 0, 0) if dark else (255, 255, 255)
    drawn = draw_image(pixels, columns, lines, blocks=blocks, dark=dark, background=background, style=Style.null())
    rows = [Text.assemble(*((part.text, part.style or "") for part in strip)) for strip in drawn]
    for row in rows:
        row.pad_right(side - row.cell_len)
    return rows


def sounds(shown: Sequence[ShownSound], width: int) -> list[Content]:
    """The waveform of each sound beside its class."""
    room = max((len(sound.label) for sound in shown), default=0)
    return [
        Content.assemble(
            (f"{fit(printable_line(sound.label), min(room, width // 3))} ", "$text-muted"),
            (sparkline(sound.peaks, min(len(sound.peaks), width - room - 1), 0, max(*sound.peaks, 1e-9)), "$primary"),
        )
        for sound in shown
    ]
