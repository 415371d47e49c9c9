"""Checks the columns that a plan names against those of a file; without TensorFlow."""

from collections.abc import Iterable

from accel_engine.data.data_options import DataOptions
from accel_engine.errors import PlanError
from accel_engine.text import suggestion

KINDS = ("number", "category", "text", "date", "boolean")
"""Kinds of columns that a plan's ``kinds`` can name."""

SPLIT_COLUMN = "column:"
"""A plan's ``split`` starts so if it names a column."""


def declared_kinds(options: DataOptions) -> dict[str, str]:
    """The kinds that a plan's ``kinds`` declares, by column.

    Raises:
        PlanError: It has another format, or an unknown kind.
    """
    kinds = {}
    for declared in options.kinds:
        name, equals, kind = declared.rpartition("=")
        if not equals or not name:
            raise PlanError("kinds", declared, f"must be NAME=KIND, e.g. {declared.strip('=') or 'zip'}=category")
        if kind not in KINDS:
            raise PlanError("kinds", declared, f"no such kind of column; {suggestion(kind, KINDS)}")
        kinds[name] = kind
    return kinds


def check_names(options: DataOptions, available: Iterable[str]) -> None:
    """Check that the file has every column that the plan names.

    Raises:
        PlanError: A column is missing, or is named for two purposes.
    """
    names = list(available)
    named = {
        "target": options.target,
        "features": options.features,
        "ignore": options.ignore,
        "kinds": tuple(declared_kinds(options)),
        "time": (options.time,) if options.time else (),
        "group": (options.group,) if options.group else (),
        "split": (options.split.removeprefix(SPLIT_COLUMN),) if options.split.startswith(SPLIT_COLUMN) else (),
    }
    for field, columns in named.items():
        for column in columns:
            if column not in names:
                raise PlanError(field, column, f"the data has no such column; {suggestion(column, names)}")
    for field in ("target", "features"):
        if both := set(named[field]) & set(options.ignore):
            raise PlanError("ignore", min(both), f"is also named by {field}")
    # A forecast may need the past of what it predicts.
    if options.window is None and (both := set(options.target) & set(options.features)):
        raise PlanError("features", min(both), "is the target")
