"""Reads the TOML table ``[search]`` of a plan file, which describes a search, and reports all its errors at once."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from accel_engine.errors import PlanError
from accel_engine.plan.options import specs_of
from accel_engine.plan.plan_file import InvalidPlanError, PlanFile, valid_part
from accel_engine.search.definition import SearchOptions
from accel_engine.search.ranges import parameter_of
from accel_engine.text import suggestion

TABLE = "search"

OVER = "over"
"""The field of the table that has the ranges."""

_EXAMPLE = "over.batch_size = [32, 64]"

_SPECS = specs_of(SearchOptions)


def split_search_options(file: PlanFile) -> tuple[PlanFile, SearchOptions]:
    """A plan file without its table ``[search]``, and the options of that table.

    Raises:
        InvalidPlanError: The table is wrong; it has the errors of the other fields, too.
    """
    table = file.values.get(TABLE, {})
    plan = replace(file, values={name: value for name, value in file.values.items() if name != TABLE})
    if not isinstance(table, Mapping):
        error = PlanError(TABLE, table, "must be a table: [search]")
        raise InvalidPlanError([error], file.describe)
    options, ranges = dict[str, Any](), table.get(OVER, {})
    errors = [*_read_options(table, options), *_range_errors(ranges)]
    if errors:
        found = [*valid_part(plan.values)[1].values(), *errors]
        located = replace(file, lines={each.field: line for each in found if (line := _line(file, each.field))})
        raise InvalidPlanError(sorted(found, key=lambda each: located.lines.get(each.field, 0)), located.describe)
    return plan, SearchOptions(parameters=tuple(parameter_of(*each) for each in ranges.items()), **options)


def _line(file: PlanFile, name: str) -> int:
    """The line that sets a dotted name, or else the table that has it; 0 if neither is known."""
    while name not in file.lines and "." in name:
        name = name.rpartition(".")[0]
    return file.lines.get(name, 0)


def _read_options(table: Mapping[str, Any], options: dict[str, Any]) -> Iterator[PlanError]:
    """Add the options of a table to others, and yield the errors of those that are wrong."""
    for name, value in table.items():
        try:
            if name != OVER:
                options[name] = _read(name, value)
        except PlanError as error:
            yield PlanError(f"{TABLE}.{name}", value, *error.reason)


def _read(name: str, value: object) -> Any:
    if name not in _SPECS:
        raise PlanError(name, value, f"unknown field; {suggestion(name, [*_SPECS, OVER])}")
    checked = _SPECS[name].check(name, value)
    read = _SPECS[name].read
    return read(checked) if read else checked


def _range_errors(ranges: object) -> Iterator[PlanError]:
    if not isinstance(ranges, Mapping):
        yield PlanError(f"{TABLE}.{OVER}", ranges, f"must be a table, such as {_EXAMPLE}")
        return
    for name, values in ranges.items():
        try:
            parameter_of(name, values)
        except PlanError as error:
            yield PlanError(f"{TABLE}.{OVER}.{error.field}", error.value, *error.reason)
