"""The results of a race as bars with figures beside them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from accel_engine.race.configuration import Best, ConfigurationResult, ConfigurationState
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting import race
from accel_tui.formatting.race import cut

Span = tuple[str, str]
"""A text and its style: ``best``, ``bar``, ``faint``, ``error`` or empty."""

TITLE_WIDTH = 26
"""The most columns of a title beside a bar."""

LEAST_BAR = 4
"""The fewest columns of a bar."""

MARKS = 23
"""Columns of two marks, with the gap before them."""

WIDE = 104
"""Columns from which compile times, energy and losses have room."""

ENDED = (
    ConfigurationState.ENDED_EARLY,
    ConfigurationState.FAILED,
    ConfigurationState.REFUSED,
    ConfigurationState.NOT_MEASURED,
)
"""States in which a configuration is faint."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures beside the bars.

    Attributes:
        heading: Its heading.
        width: Its width, with the gap before it.
        text: The figure of a configuration.
    """

    heading: str
    width: int
    text: Callable[[ConfigurationResult], str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in a line.

    Attributes:
        titles: Columns of the titles.
        bar: Columns of the bars.
        columns: The figures.
        marks: Columns of the marks; 0 without them.
        longest: Examples a second of a bar of full length.
    """

    titles: int
    bar: int
    columns: tuple[Column, ...]
    marks: int
    longest: float


def layout_of(results: Sequence[ConfigurationResult], width: int) -> Layout:
    """Lay lines of a width out."""
    has_two = any(len(each) > 1 for each in race.marks_of(results).values())
    share = width // 4 if has_two else width // 3
    titles = min(max((cell_len(each.title) for each in results), default=0), TITLE_WIDTH, max(share, 8))
    columns = [
        Column("examples/s", 11, lambda each: numbers.compact(each.examples_per_second or 0.0)),
        Column("speed", 8, race.ratio_text),
        Column("memory", 8, race.memory_text),
    ]
    if width >= WIDE:
        columns.insert(1, Column("spread", 8, race.spread_text))
        columns.append(Column("compile", 9, race.compile_text))
        if any(each.joules is not None for each in results):
            columns.append(Column("J/example", 11, lambda each: race.energy_text(each) if each.joules else ""))
        columns.append(Column("losses", 18, lambda each: each.losses.text if each.losses else ""))
    figures = sum(each.width for each in columns)
    room = width - titles - 2 - figures
    fits_two = has_two and room - MARKS > LEAST_BAR
    marks = MARKS if fits_two else 15 if room - 15 >= max(LEAST_BAR, 7) else 0
    longest = max((each.between[1] for each in results if each.between and each.is_measured), default=0.0)
    return Layout(titles, max(room - marks, LEAST_BAR), tuple(columns), marks, longest)


def heading(results: Sequence[ConfigurationResult], width: int) -> str:
    """The headings above the bars."""
    layout = layout_of(results, width)
    figures = "".join(f"{each.heading:>{each.width}}" for each in layout.columns)
    return f"{'configuration':{layout.titles + 2 + layout.bar}}{figures}"


def bars(results: Sequence[ConfigurationResult], width: int) -> list[list[Span]]:
    """A line for each configuration: its bar, whose dashed end is the spread, and its figures; or how far it is.

    Args:
        results: The results.
        width: Columns of a line.
    """
    layout, marks = layout_of(results, width), race.marks_of(results)
    return [_line(each, layout, width, marks.get(each.title, ())) for each in results]


def _line(result: ConfigurationResult, layout: Layout, width: int, marks: tuple[str, ...]) -> list[Span]:
    style = "faint" if result.state in ENDED else "best" if Best.FASTEST in marks else ""
    title = (f"{cut(printable_line(result.title), layout.titles)}  ", style)
    if not result.is_measured or result.between is None or result.examples_per_second is None:
        how = "error" if result.state is ConfigurationState.FAILED else "faint"
        return [title, (cut(printable_line(race.state_text(result)), width - layout.titles - 2), how)]
    faint = "faint" if style == "faint" else ""
    figures = [
        (f"{cut(each.text(result), each.width - 1, right=True):>{each.width}}", faint) for each in layout.columns
    ]
    figures[0] = (figures[0][0], style)
    note = race.marks_text(marks) or _note(result)
    end = [(cut(f"  {note}", layout.marks), "best" if marks else "faint")] if layout.marks else []
    return [title, *_bar(result, layout, style), *figures, *end]


def _bar(result: ConfigurationResult, layout: Layout, style: str) -> list[Span]:
    """A bar that is solid up to the lower end of the spread, and dashed up to its upper end."""
    low, high = result.between or (0.0, 0.0)
    ends = [
        max(round(layout.bar * each / layout.longest), 1) for each in (low, result.examples_per_second or 0.0, high)
    ]
    solid, value, last = ends[0], max(ends[:2]), max(ends)
    shown = style or "bar"
    return [
        ("━" * solid + "╍" * (value - solid), shown),
        ("┄" * (last - value) + " " * (layout.bar - last), "faint"),
    ]


def _note(result: ConfigurationResult) -> str:
    if result.state is ConfigurationState.ENDED_EARLY:
        return "ended early"
    return result.configuration.other_training
