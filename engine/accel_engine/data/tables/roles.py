"""Decides which columns of a table are inputs and targets; without TensorFlow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from accel_engine.data.changes import Change
from accel_engine.data.data_options import DataOptions
from accel_engine.data.tables.columns import SPLIT_COLUMN, TableColumn
from accel_engine.errors import DataError, PlanError

TARGET_NAMES = (
    "target",
    "label",
    "class",
    "y",
    "labels",
    "targets",
    "outcome",
    "species",
    "survived",
    "median_house_value",
)
"""Names, in lower case, of the column to predict, in the order of preference."""

WEIGHT_NAMES = ("sample_weight", "sample_weights")
"""Names of a column with sample weights."""

_MAX_LISTED = 5

_INPUT_KINDS = ("number", "category", "text", "date", "boolean")


@dataclass(frozen=True, slots=True)
class TableRoles:
    """What the columns of a table are for.

    Attributes:
        targets: Columns to predict; empty if nothing is predicted (``task`` is ``reconstruction``).
        inputs: Columns that the model gets, in the order of the file.
        weight: Column with sample weights; empty if there is none.
        split: Column that tells training, validation and test examples apart; empty if there is none.
        order: Column that orders the rows; empty if they are in order.
        group: Column that tells several time series apart; empty if there is none.
        notes: Notes for the user.
        changes: The columns that are left out.
    """

    targets: tuple[str, ...]
    inputs: tuple[str, ...]
    weight: str = ""
    split: str = ""
    order: str = ""
    group: str = ""
    notes: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()

    def by_name(self) -> dict[str, str]:
        """The role of each column that has one, as in :class:`~accel_engine.data.dataset_entry.EntryColumn`."""
        single = {self.weight: "weight", self.split: "split", self.order: "time", self.group: "group"}
        return {**single, **dict.fromkeys(self.inputs, "input"), **dict.fromkeys(self.targets, "target")}


def choose_table_roles(columns: Mapping[str, TableColumn], options: DataOptions) -> TableRoles:
    """Choose the inputs and targets of a table.

    Args:
        columns: The columns by name.
        options: The columns that the plan names.

    Raises:
        PlanError: A target or feature cannot be used.
        DataError: No column is left for the inputs.
    """
    split = options.split.removeprefix(SPLIT_COLUMN) if options.split.startswith(SPLIT_COLUMN) else ""
    taken = {*options.ignore, split, options.time, options.group} - {""}
    weight = next((name for name in WEIGHT_NAMES if name in columns and name not in (*options.target, *taken)), "")
    taken.add(weight)
    targets, notes, changes = options.target, list[str](), list[Change]()
    if not targets and options.task != "reconstruction":
        targets = (_default_target(columns, taken, options),)
        notes.append(f"the target is the column {targets[0]}: choose another one with --target")
    for name in targets:
        if columns[name].kind in ("empty", "other"):
            raise PlanError("target", name, f"the column {_without_use(columns[name])}")
    taken.update(targets)
    if options.features:
        for name in options.features:
            if columns[name].kind not in (*_INPUT_KINDS, "key"):
                raise PlanError("features", name, f"the column {_without_use(columns[name])}")
        wanted = frozenset(options.features) - taken
        inputs = tuple(name for name in columns if name in wanted)
    else:
        inputs = tuple(name for name in columns if name not in taken and columns[name].kind in _INPUT_KINDS)
        if not inputs:  # numbers of the rows are better than nothing, as in y = f(x)
            inputs = tuple(name for name in columns if name not in taken and columns[name].kind == "key")
        used = {*inputs, *taken}
        changes += _left_out([column for name, column in columns.items() if name not in used])
    if not inputs:
        raise DataError("no column is left for the inputs; check --features, --ignore and --kinds")
    if weight:
        notes.append(f"sample weights are those of the column {weight}")
    return TableRoles(targets, inputs, weight, split, options.time, options.group, tuple(notes), tuple(changes))


def _default_target(columns: Mapping[str, TableColumn], taken: set[str], options: DataOptions) -> str:
    """The column with a common name of targets, otherwise the last one that can be predicted."""
    others = {*taken, *options.features}
    usable = [name for name in columns if name not in others and columns[name].kind in _INPUT_KINDS]
    if not usable:
        raise PlanError("target", "", "no column is left to predict; check --features and --ignore")
    lowered = {name.lower(): name for name in reversed(usable)}
    return next((lowered[name] for name in TARGET_NAMES if name in lowered), usable[-1])


def _left_out(columns: Sequence[TableColumn]) -> Iterator[Change]:
    for column in columns[:_MAX_LISTED]:
        yield Change("left out", f"column {column.name}", detail=f"it {_without_use(column)}")
    if len(columns) > _MAX_LISTED:
        yield Change("left out", "more columns without categories or numbers", len(columns) - _MAX_LISTED)


def _without_use(column: TableColumn) -> str:
    if column.kind == "empty":
        return "has no values"
    if column.kind == "other":
        return "has values that cannot be used, such as lists or bytes"
    hint = "number" if column.integers else "category"
    return f"has a different value in most rows (use it with --kinds '{column.name}={hint}')"
