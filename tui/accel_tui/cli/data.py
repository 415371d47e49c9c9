"""``accel-tui data``: lists the built-in datasets, or shows what is understood of the user's data before training."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from accel_engine import data as datasets
from accel_engine.data.data_options import PLAN_FIELDS
from accel_engine.data.dataset_entry import DescribedData, EntryColumn
from accel_engine.errors import AccelError, DataError, FieldValue
from accel_engine.plan import DEFAULTS, Plan
from accel_engine.process.ask import ask
from accel_engine.requests.describe_data import DataRequest
from accel_engine.words import numbers
from accel_engine.words.numbers import percent
from accel_tui.cli.catalogue import list_data
from accel_tui.cli.output import json_option, readable, table, write, write_json
from accel_tui.cli.plan_options import PlanCommand, given, plan_option
from accel_tui.formatting.text import shorten
from accel_tui.settings.user_settings import load

EPILOG = """\b
Examples:
  accel-tui data
  accel-tui data houses.csv --target price
  accel-tui data photos/ --image-size 96x96
  accel-tui data mine.py:load --json | jq .class_counts
"""

MAX_CLASSES = 20
"""Up to this number all classes are shown, else the largest and the smallest."""

_LARGEST, _SMALLEST = 12, 5
_BAR = 30
_NAME = 24
_SAMPLE = 300


@click.command(cls=PlanCommand, epilog=EPILOG)
@click.argument("data", metavar="[DATA]", required=False)
@json_option
def data(data: str | None, as_json: bool, **flags: Any) -> None:
    """Show what is understood of DATA before training; without DATA, list the built-in datasets.

    DATA is a name, a file, a folder or a Python function, as for 'accel-tui train --data'. It shows
    columns and their kinds, shapes, classes and their balance, ranges, missing values, splits and a
    few examples. Names, headers and first rows are read; a Python function is run, which first
    imports TensorFlow.
    """
    if data is None:
        if unused := [str(FieldValue(name)) for name in given(flags)]:
            raise click.UsageError(f"{', '.join(unused)} needs DATA")
        list_data(as_json=as_json)
        return
    plan = Plan.from_mapping({**load().plan, **given(flags), "data": data})
    problem = None
    try:
        known = look(plan)
    except DataError as error:  # show what is understood without the invalid examples, and then the error
        if plan.invalid_examples == "skip":
            raise
        problem, known = error, _look_without_invalid(plan, error)
    if as_json:
        write_json(known.to_json())
    else:
        write("\n".join(_page(known)))
    if problem:
        raise problem


def look(plan: Plan) -> DescribedData:
    """What is known of a plan's data without training; runs the user's function, or reads what is elsewhere."""
    entry = datasets.survey(datasets.find(plan.data), plan.data_options)
    return ask(DataRequest(plan)) if entry.needs_engine else DescribedData.of(entry)


def _look_without_invalid(plan: Plan, problem: DataError) -> DescribedData:
    try:
        return look(plan.replace(invalid_examples="skip"))
    except AccelError:
        raise problem from None


def _page(known: DescribedData) -> Iterator[str]:
    entry = known.entry
    yield f"{entry.name}: {entry.summary}"
    yield ""
    yield from _rows(_facts(known))
    if columns := entry.columns:
        yield ""
        yield table(("COLUMN", "KIND", "ROLE", "MISSING", "VALUES"), [_column(column) for column in columns])
    if counts := entry.class_counts:
        yield ""
        yield from _balance(entry.class_names or [str(index) for index in range(len(counts))], counts)
    if samples := entry.samples:
        yield ""
        yield table(("EXAMPLE", "VALUES"), [(name, shorten(text, _SAMPLE)) for name, text in samples])
    for note in (*entry.notes, *map(str, entry.changes)):
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


def _column(column: EntryColumn) -> tuple[str, ...]:
    missing = "" if column.missing is None else numbers.count(column.missing)
    return (shorten(column.name, _NAME), column.kind, column.role, missing, column.detail)


def _balance(names: Sequence[str], counts: Sequence[int]) -> Iterator[str]:
    """A bar for each class; of many classes, for the largest and the smallest."""
    classes = list(zip(names, counts, strict=False))
    gap = 0
    if len(classes) > MAX_CLASSES:
        classes.sort(key=lambda each: -each[1])
        gap = len(classes) - _LARGEST - _SMALLEST
        classes = [*classes[:_LARGEST], *classes[-_SMALLEST:]]
    total, largest = sum(counts), max(*counts, 1)
    rows = []
    for index, (name, count) in enumerate(classes):
        bar = readable("█") * round(_BAR * count / largest)
        if gap and index == _LARGEST:
            rows.append((f"({gap} more)", "", "", ""))
        rows.append((shorten(name, _NAME), numbers.count(count), percent(count / max(total, 1)), bar))
    yield table(("CLASS", "EXAMPLES", "SHARE", ""), rows)


data.params[1:1] = [plan_option(name, default=DEFAULTS[name]) for name in PLAN_FIELDS]
