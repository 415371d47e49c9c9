"""``accel-tui data``: lists the built-in datasets, or shows what is understood of the user's data before training."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import click

from accel_engine import data as datasets
from accel_engine.data.changes import remarks
from accel_engine.data.data_options import PLAN_FIELDS
from accel_engine.data.source import EntryColumn
from accel_engine.data_profile.described_data import DescribedData, describe_loaded
from accel_engine.data_profile.picture import ColumnValues, DataPicture, ShownPicture, ShownSound
from accel_engine.errors import AccelError, DataError, FieldValue
from accel_engine.plan import Plan
from accel_engine.process.engine_call import ask
from accel_engine.requests.describe_data import DataRequest
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.cli.catalogue import list_data
from accel_tui.cli.live import reading_bar
from accel_tui.cli.output import json_option, print_to_stderr, readable, table, terminal_columns, write, write_json
from accel_tui.cli.plan_options import PlanCommand, given
from accel_tui.formatting.data import histogram_blocks, of_total, share_bars
from accel_tui.formatting.text import shorten, sparkline
from accel_tui.settings.user_settings import load_settings
from accel_tui.widgets.data_pictures import strips_of_picture

EPILOG = """\b
Examples:
  accel-tui data
  accel-tui data houses.csv --target price
  accel-tui data photos/ --image-size 96x96
  accel-tui data mine.py:load --json | jq .class_counts
"""

MAX_CLASSES = 20
"""Up to this number all classes are shown, else the largest and the smallest, in fewer lines."""

_BAR = 30
_NAME = 24
_SAMPLE = 300
_PICTURE = 24
_NAMED = 6


@click.command(cls=PlanCommand, fields=PLAN_FIELDS, epilog=EPILOG)
@click.argument("data", metavar="[DATA]", required=False)
@click.option("--brief", is_flag=True, help="Look at names, headers and first rows only, which is faster.")
@json_option
def data(data: str | None, brief: bool, as_json: bool, **flags: Any) -> None:
    """Show what DATA is like before training; without DATA, list the built-in datasets.

    DATA is a name, a file, a folder or a Python function, as for 'accel-tui train --data'. It shows
    columns and their kinds, shapes, classes and their balance, distributions, missing values, splits,
    some examples, duplicates, what reading changes, and what a prediction reaches that has learned
    nothing. A Python function is run, which first imports TensorFlow.
    """
    if data is None:
        if unused := [str(FieldValue(name)) for name in given(flags)]:
            raise click.UsageError(f"{', '.join(unused)} needs DATA")
        list_data(as_json=as_json)
        return
    plan = Plan.from_mapping({**load_settings().plan, **given(flags), "data": data})
    problem = None
    try:
        known = _ask_for_description(plan, reads=not brief)
    except DataError as error:  # show what is understood without the invalid examples, and then the error
        if plan.invalid_examples == "skip":
            raise
        problem, known = error, _describe_without_invalid(plan, error, reads=not brief)
    if as_json:
        write_json(known.to_json())
    else:
        write("\n".join(_page(known)))
    if problem:
        print_to_stderr("shown without the invalid examples, which training leaves out only if it is told to:")
        raise problem


def _ask_for_description(plan: Plan, *, reads: bool = False) -> DescribedData:
    """Describe a plan's data without training; runs the user's function, or reads what is elsewhere.

    Args:
        plan: Names the data, and how it is read and split.
        reads: Whether the data is read, to show what examples are like.
    """
    entry = datasets.survey(datasets.find(plan.data), plan.data_options)
    if entry.needs_engine or (reads and datasets.source_of(entry).loads_with_tensorflow):
        return ask(DataRequest(plan))
    if not reads:
        return DescribedData.of(entry)
    with reading_bar(sys.stderr) as progress:
        return describe_loaded(plan.data, plan.data_options, entry, progress)


def _describe_without_invalid(plan: Plan, problem: DataError, *, reads: bool) -> DescribedData:
    try:
        return _ask_for_description(plan.replace(invalid_examples="skip"), reads=reads)
    except AccelError:
        raise problem from None


def _page(known: DescribedData) -> Iterator[str]:
    entry = known.entry
    yield f"{entry.name}: {entry.summary}"
    yield ""
    yield from _rows(_facts(known))
    picture = known.picture or DataPicture()
    values = {column.name: column for column in picture.columns}
    if columns := entry.columns:
        yield ""
        heads = ("COLUMN", "KIND", "ROLE", "MISSING", "DISTRIBUTION", "VALUES")
        yield table(heads, [_column(column, values.get(column.name)) for column in columns])
    if counts := entry.class_counts:
        yield ""
        yield from _balance(entry.class_names or [str(index) for index in range(len(counts))], counts)
    if samples := entry.samples:
        yield ""
        yield table(("EXAMPLE", "VALUES"), [(name, shorten(text, _SAMPLE)) for name, text in samples])
    if known.picture:
        yield from _pictures(picture)
        if findings := _findings(picture):
            yield ""
            yield from _rows(findings)
    for note in remarks(entry.notes, entry.changes):
        yield f"\nNote: {note}"


def _rows(facts: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max(len(name) for name, _ in facts)
    yield from (f"{name:<{width}}  {text}" for name, text in facts)


def _facts(known: DescribedData) -> list[tuple[str, str]]:
    entry = known.entry
    facts = [
        ("kind", entry.kind),
        ("task", "" if entry.task == "auto" else entry.task),
        ("inputs", _arrays(known.inputs) or _shape(entry.shape)),
        ("targets", _arrays(known.targets)),
        ("weights", _arrays(known.weights)),
        ("classes", numbers.count(entry.classes) if entry.classes else ""),
        ("training", _examples(entry.examples) or "unknown number of examples"),
        ("validation", _examples(entry.validation_examples)),
        ("test", _examples(entry.test_examples)),
    ]
    return [(name, text) for name, text in facts if text]


def _examples(count: int | None) -> str:
    return numbers.counted(count, "example") if count else ""


def _shape(shape: Sequence[int] | None) -> str:
    return "" if shape is None else numbers.shape(shape)


def _arrays(spec: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {text}" if name else text for name, text in spec.items())


def _column(column: EntryColumn, values: ColumnValues | None) -> tuple[str, ...]:
    missing = "" if column.missing is None else numbers.count(column.missing)
    distribution = readable(histogram_blocks(values)) if values else ""
    return (shorten(column.name, _NAME), column.kind, column.role, missing, distribution, column.detail)


def _pictures(picture: DataPicture) -> Iterator[str]:
    """Some pictures in shading characters side by side, with their classes; sounds as waveforms."""
    across = max(1, terminal_columns() // (_PICTURE + 2))
    for first in range(0, len(picture.pictures), across):
        row = picture.pictures[first : first + across]
        drawn = [_drawn(shown) for shown in row]
        yield ""
        yield "  ".join(f"{shorten(shown.label, _PICTURE):<{_PICTURE}}" for shown in row).rstrip()
        lines = zip_longest(*drawn, fillvalue=" " * _PICTURE)
        yield "\n".join("  ".join(parts).rstrip() for parts in lines)
    if picture.sounds:
        yield ""
        yield table(("SOUND", ""), [_sound(sound) for sound in picture.sounds])


def _drawn(picture: ShownPicture) -> list[str]:
    return [line.plain for line in strips_of_picture(picture, _PICTURE, blocks=False, dark=True)]


def _sound(sound: ShownSound) -> tuple[str, str]:
    loudest = max(*sound.peaks, 1e-9)
    return shorten(sound.label, _NAME), readable(sparkline(sound.peaks, len(sound.peaks), 0, loudest))


def _findings(picture: DataPicture) -> list[tuple[str, str]]:
    """The findings in the examples, and what a model can reach."""
    equal = picture.equal
    constant = [column.name for column in picture.columns if column.is_constant]
    unique = [column.name for column in picture.columns if column.is_nearly_unique]
    reached = ", ".join(f"{name} {numbers.metric(value)}" for name, value in picture.metrics)
    found = [
        ("duplicates", f"{of_total(equal.duplicates, equal.compared)} equal another one" if equal.duplicates else ""),
        (
            "conflicts",
            f"{numbers.counted(equal.conflicts, 'equal example')} of other classes" if equal.conflicts else "",
        ),
        ("in two splits", f"{of_total(equal.leaked, equal.compared_validation)} of validation" if equal.leaked else ""),
        ("constant", _named(constant)),
        ("nearly unique", _named(unique)),
        ("default model", picture.model),
        ("baseline", f"{picture.baseline}: {reached}" if picture.baseline else ""),
    ]
    return [(name, text) for name, text in found if text]


def _named(names: Sequence[str]) -> str:
    return numbers.listed((shorten(name, _NAME) for name in names), _NAMED)


def _balance(names: Sequence[str], counts: Sequence[int]) -> Iterator[str]:
    """A bar for each class; of many classes, for the largest and the smallest."""
    total = sum(counts)
    rows = []
    for name, count, bar in share_bars(names, counts, _BAR, MAX_CLASSES):
        texts = (numbers.count(count), percent(count / max(total, 1)), readable(bar)) if name in names else ("", "", "")
        rows.append((shorten(name, _NAME), *texts))
    yield table(("CLASS", "EXAMPLES", "SHARE", ""), rows)
