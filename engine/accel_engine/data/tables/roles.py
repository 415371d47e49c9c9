"""Decides which columns of a table are inputs and targets; without TensorFlow."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions
from accel_engine.data.roles import Roles, choose_roles
from accel_engine.data.tables.columns import KINDS, TableColumn
from accel_engine.errors import PlanError

_MAX_LISTED = 5


def choose_table_roles(columns: Mapping[str, TableColumn], options: DataOptions) -> Roles:
    """Choose the inputs and targets of a table, the inputs in the order of the file.

    Without a common name of a target, the last column is predicted.

    Args:
        columns: The columns by name.
        options: The columns that the plan names.

    Raises:
        PlanError: A target or feature cannot be used.
        DataError: No column is left for the inputs.
    """
    usable = [name for name, column in columns.items() if column.kind in KINDS]
    keys = [name for name, column in columns.items() if column.kind == "key"]
    predicts = options.task != "reconstruction"
    # Numbers of the rows are better than nothing, as in y = f(x).
    roles = choose_roles(usable, options, None if predicts else (), spare=keys, predicts_last=predicts)
    for field, names in (("target", roles.targets), ("features", options.features)):
        for name in names:
            if columns[name].kind not in (*KINDS, "key"):
                raise PlanError(field, name, f"the column {_without_use(columns[name])}")
    return replace(roles, inputs=tuple(name for name in columns if name in roles.inputs))


def left_out(columns: Mapping[str, TableColumn], roles: Roles, options: DataOptions) -> Iterator[Change]:
    """The columns that are left out although the plan does not say so."""
    if options.features:
        return
    used = {*roles.by_name(), *options.ignore}
    unused = [column for name, column in columns.items() if name not in used]
    for column in unused[:_MAX_LISTED]:
        yield Change("left out", f"column {column.name}", detail=f"it {_without_use(column)}")
    if len(unused) > _MAX_LISTED:
        yield Change("left out", "more columns without categories or numbers", len(unused) - _MAX_LISTED)


def notes_of(roles: Roles, options: DataOptions) -> Iterator[str]:
    """What was chosen that the plan does not say."""
    if roles.targets and not options.target:
        yield f"the target is the column {roles.targets[0]}: choose another one with --target"
    if roles.weight:
        yield f"sample weights are those of the column {roles.weight}"


def _without_use(column: TableColumn) -> str:
    if column.kind == "empty":
        return "has no values"
    if column.kind == "other":
        return "has values that cannot be used, such as lists or bytes"
    hint = "number" if column.integers else "category"
    return f"has a different value in most rows (use it with --kinds '{column.name}={hint}')"
