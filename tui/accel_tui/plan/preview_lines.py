"""The preview of the form's data before training, as lines; without widgets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content

from accel_engine.data import DatasetEntry
from accel_engine.data.changes import remarks
from accel_engine.data.source import EntryColumn
from accel_engine.data_profile.picture import ColumnValues, DataPicture
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.formatting.data import histogram_blocks, of_total, share_bars
from accel_tui.formatting.text import fit, sparkline, wrapped
from accel_tui.plan import data_text, field_labels
from accel_tui.plan.data_reading import Preview

MAX_COLUMNS = 300
"""Columns that are listed; others are counted."""

_BINS = 8
_KIND = 8
_TEXT_LINES = 6
_CLASSES = 6


@dataclass(frozen=True, slots=True)
class PreviewLine:
    """A line of a preview."""

    content: Content
    column: str = ""
    """The column that it is about, which can be the target; empty for none."""


def preview_lines(
    entry: DatasetEntry, found: Preview | None, width: int, pictures: Sequence[Content] = ()
) -> list[PreviewLine]:
    """The preview.

    Args:
        entry: What names, headers and first rows tell.
        found: What reading has told; ``None`` while it is read.
        width: Cells.
        pictures: The lines of pictures.
    """
    known = found.known if found else None
    if known:
        entry = known.entry
    picture = (known.picture if known else None) or DataPicture()
    lines = [
        *_plain(_counts(entry, width)),
        *_columns(entry, picture, width),
        *_plain(pictures),
        *_plain(_classes(entry, width)),
        *_plain(_beginning(entry, width)),
        *_plain(_findings(entry, picture, width)),
        *_plain(_source(entry, picture, found, width)),
    ]
    return [PreviewLine(line.content.truncate(width, ellipsis=True), line.column) for line in lines]


def _plain(contents: Sequence[Content] | Iterator[Content]) -> Iterator[PreviewLine]:
    return (PreviewLine(content) for content in contents)


def _counts(entry: DatasetEntry, width: int) -> Iterator[Content]:
    if entry.examples is not None:
        yield from _wrapped(data_text.splits(entry), width)


def _columns(entry: DatasetEntry, picture: DataPicture, width: int) -> Iterator[PreviewLine]:
    """A line for each column, or for each array of data that is no table, with the histogram of its values."""
    if entry.kind in ("images", "audio", "tokens", "text") and not _is_table(entry):
        return
    values = {each.name: each for each in picture.columns}
    name = min(max((cell_len(printable_line(column.name)) for column in entry.columns), default=0), max(width // 4, 8))
    for column in entry.columns[:MAX_COLUMNS]:
        is_table = _is_table(entry)
        known = values.get(column.name)
        yield PreviewLine(_column(column, known, name, is_table=is_table), column.name if is_table else "")
    if len(entry.columns) > MAX_COLUMNS:
        yield PreviewLine(Content.styled(f"{len(entry.columns) - MAX_COLUMNS:,} more columns", "$text-muted"))


def _is_table(entry: DatasetEntry) -> bool:
    return entry.kind in ("table", "series")


def _column(column: EntryColumn, values: ColumnValues | None, width: int, *, is_table: bool) -> Content:
    is_target, is_used = column.role == "target", column.role not in ("unused", "ignored")
    missing = f" ∅{numbers.count(column.missing)}" if column.missing else ""
    role = {"input": column.kind, "unused": "not used"}.get(column.role, column.role)
    return Content.assemble(
        (fit(printable_line(column.name), width), "$accent bold" if is_target else "" if is_used else "$text-disabled"),
        (f" {role:<{_KIND}} ", "$accent" if is_target else "$text-muted"),
        (histogram_blocks(values, _BINS) if values else " " * _BINS, "$primary"),
        (f" {_range(column, values, is_table=is_table)}", "$text-muted"),
        (missing, "$text-warning"),
    )


def _range(column: EntryColumn, values: ColumnValues | None, *, is_table: bool) -> str:
    """The range of numbers, or the number of different texts.

    A table has the range of all rows; the values that are looked at were scaled for the model, and are not exact.
    """
    if values and values.low is not None and values.high is not None and not (is_table and column.detail):
        return f"{_short(values.low)} … {_short(values.high)}"
    if values and values.frequent:
        return numbers.counted(values.distinct, "value")
    return printable_line(column.detail)


def _short(value: float) -> str:
    """A number in few digits: ``0.25``, ``1900``, ``621k``."""
    return numbers.compact(value) if abs(value) >= 1e5 else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _classes(entry: DatasetEntry, width: int) -> Iterator[Content]:
    counts = entry.class_counts
    if not counts:
        return
    names = [printable_line(name) for name in entry.class_names] or [str(number) for number in range(len(counts))]
    yield Content.styled(f"{len(counts)} classes, {data_text.balance(counts)}", "$text-muted")
    if len(counts) > _CLASSES and max(counts) <= 2 * min(counts):  # balanced
        yield Content.styled(sparkline(counts, min(len(counts), width), 0, max(counts)), "$primary")
        return
    room = min(max(map(cell_len, names), default=1), max(width // 3, 6))
    for name, count, bar in share_bars(names, counts, max(width - room - 8, 4), _CLASSES):
        text = f" {numbers.count(count):>6} " if count else " " * 8
        yield Content.assemble((fit(name, room), ""), (text, "$text-muted"), (bar, "$primary"))


def _beginning(entry: DatasetEntry, width: int) -> Iterator[Content]:
    """The beginning of a text, or the first texts."""
    if entry.kind not in ("tokens", "text"):
        return
    for column in entry.columns:
        yield from _wrapped(column.detail, width)
    for name, text in entry.samples[: 1 if entry.kind == "tokens" else 3]:
        lines = wrapped(printable_line(text), max(width - 2, 8))[: _TEXT_LINES if entry.kind == "tokens" else 2]
        for line in lines:
            yield Content.assemble(("│ ", "$primary"), line)
        if entry.kind == "text" and name:
            yield Content.styled(f"  {printable_line(name)}", "$text-muted")


def _findings(entry: DatasetEntry, picture: DataPicture, width: int) -> Iterator[Content]:
    equal = picture.equal
    found = [
        f"{of_total(equal.duplicates, equal.compared)} equal another one" if equal.duplicates else "",
        f"{numbers.counted(equal.conflicts, 'equal example')} of other classes" if equal.conflicts else "",
        f"{of_total(equal.leaked, equal.compared_validation)} of validation also in training" if equal.leaked else "",
        *(f"{column.name} is constant" for column in picture.columns if column.is_constant),
        *(f"{column.name}: nearly all values differ" for column in picture.columns if column.is_nearly_unique),
        *(field_labels.in_form(note) for note in remarks(entry.notes, entry.changes)),
    ]
    for text in filter(None, found):
        for number, line in enumerate(_wrapped(text, width - 2, "$text-warning")):
            yield Content.assemble(("  " if number else "⚠ ", "$text-warning"), line)
    if picture.baseline:
        reached = ", ".join(f"{name} {numbers.metric(value)}" for name, value in picture.metrics)
        yield from _wrapped(f"baseline: {printable_line(picture.baseline)}: {reached}", width)


def _source(entry: DatasetEntry, picture: DataPicture, found: Preview | None, width: int) -> Iterator[Content]:
    """Lines on the source of the preview."""
    if found is None:
        yield Content.styled("reading the data…", "$text-disabled")
    elif found.reason:
        yield from _wrapped(printable_line(found.reason), width, "$text-disabled")
    elif _is_table(entry) and (counted := max((column.count for column in picture.columns), default=0)):
        of = "all" if counted == entry.examples else f"{counted:,}"
        yield Content.styled(f"distributions of {of} training rows", "$text-disabled")


def _wrapped(text: str, width: int, style: str = "$text-muted") -> Iterator[Content]:
    return (Content.styled(line, style) for line in wrapped(printable_line(text), max(width, 8)) if text)
