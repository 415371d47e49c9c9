"""Distributions, shares and sounds of data, the same in the form and in commands."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from textual.content import Content

from accel_engine.data_profile.picture import ColumnValues, ShownSound
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.bars import bar
from accel_tui.formatting.text import fit, sparkline


def histogram_blocks(values: ColumnValues, width: int = 0) -> str:
    """A block of each bin, of which empty ones are blank; the top of the row stays free.

    Args:
        values: The values of a column.
        width: Number of blocks; as many as there are bins if it is 0. Several bins then share a block.
    """
    counts = values.counts
    if width and len(counts) > width:
        edges = [round(part * len(counts) / width) for part in range(width + 1)]
        counts = tuple(sum(counts[first:stop]) for first, stop in pairwise(edges))
    drawn = sparkline([count or None for count in counts], len(counts), 0, max(counts, default=1) * 8 / 7)
    return drawn.ljust(width)


def of_total(count: int, total: int) -> str:
    """How many of how many examples: ``12 of 500 examples``."""
    return f"{numbers.count(count)} of {numbers.counted(total, 'example')}"


def share_bars(names: Sequence[str], counts: Sequence[int], width: int, most: int) -> Iterator[tuple[str, int, str]]:
    """A name, a count and a bar for each class; of many classes, for the largest and the smallest.

    Args:
        names: The classes.
        counts: Their numbers of examples.
        width: Cells of the longest bar.
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
        yield name, count, bar(count / longest, width)


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
