"""Chooses what the columns of a table, the arrays of a file and the features of records are for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accel_engine.data.data_options import DataOptions
from accel_engine.data.structure import Batch, Structure
from accel_engine.errors import DataError, PlanError
from accel_engine.text import suggestion

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
"""Names, in lower case, of what is predicted unless the plan names others, in the order of preference."""

WEIGHT_NAMES = ("sample_weight", "sample_weights")
"""Names of sample weights."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of columns, arrays or features."""

    inputs: tuple[str, ...]
    """The inputs of the model."""
    targets: tuple[str, ...]
    """The targets; empty if there are none."""
    weight: str = ""
    """The sample weights; empty if there are none."""
    split: str = ""
    """Tells training, validation and test examples apart; empty if nothing does."""
    time: str = ""
    """Orders the examples; empty if they are in order."""
    group: str = ""
    """Tells several time series apart; empty if there is one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parts of an example, each once."""
        return tuple(dict.fromkeys((*self.inputs, *self.targets, *filter(None, [self.weight]))))

    def by_name(self) -> dict[str, str]:
        """The role of each name that has one, as in :class:`~accel_engine.data.source.EntryColumn`."""
        single = {self.weight: "weight", self.split: "split", self.time: "time", self.group: "group"}
        return {**single, **dict.fromkeys(self.inputs, "input"), **dict.fromkeys(self.targets, "target")}

    def batch(self, values: Mapping[str, Structure]) -> Batch:
        """The parts of an example: a single value as it is, several as a dictionary by name."""
        return Batch(_part(self.inputs, values), _part(self.targets, values), values.get(self.weight))


def _part(names: Sequence[str], values: Mapping[str, Structure]) -> Structure:
    return values[names[0]] if len(names) == 1 else {name: values[name] for name in names} or None


def check_named_columns(options: DataOptions, names: Iterable[str], noun: str = "column") -> None:
    """Check that there is everything that the plan names.

    Args:
        options: The plan's target, features and so on.
        names: Names of all columns, arrays or features.
        noun: What they are.

    Raises:
        PlanError: A name is missing, or is named for two purposes.
    """
    names = list(names)
    known = frozenset(names)
    single = {"time": options.time, "group": options.group, "split": options.split_column}
    named = {
        "target": options.target,
        "features": options.features,
        "ignore": options.ignore,
        "kinds": tuple(each.rpartition("=")[0] for each in options.kinds),
        **{field: (name,) for field, name in single.items() if name},
    }
    for field, wanted in named.items():
        for name in wanted:
            if name not in known:
                raise PlanError(field, name, f"the data has no {noun} {name!r}; {suggestion(name, names)}")
    for field in ("target", "features"):
        if both := set(named[field]) & set(options.ignore):
            raise PlanError("ignore", min(both), f"is also named by {field}")
    # A forecast may need the past of what it predicts.
    may_be_both = options.window is not None or options.task == "reconstruction"
    if not may_be_both and (both := set(options.target) & set(options.features)):
        raise PlanError("features", min(both), "is the target")


def choose_roles(
    names: Sequence[str],
    options: DataOptions,
    targets: Sequence[str] | None = None,
    *,
    weight: str | None = None,
    spare: Sequence[str] = (),
    predicts_last: bool = False,
) -> Roles:
    """Choose inputs, targets and the others: as the plan says, and otherwise by their names.

    Args:
        names: Names of all that can be an input or a target.
        options: The plan's target, features and ignored names.
        targets: The targets that the data names; ``None`` if it names none.
        weight: The sample weights that the data names; ``None`` if it names none.
        spare: Names of what is an input only if nothing else is.
        predicts_last: Whether the last name is the target if no name is usual for targets.

    Raises:
        DataError: There are no inputs.
    """
    taken = {*options.ignore, options.split_column, options.time, options.group}
    if weight is None:
        weight = next((name for name in WEIGHT_NAMES if name in names and name not in {*options.target, *taken}), "")
    taken.add(weight)
    if targets is None:
        left = [name for name in names if name not in {*taken, *options.features}]
        lowered = {name.lower(): name for name in reversed(left)}
        common = [lowered[name] for name in TARGET_NAMES if name in lowered]
        targets = (common or left[-1:] * predicts_last)[:1]
    chosen = options.target or tuple(targets)
    taken.update(chosen)
    inputs = options.features or tuple(name for name in names if name not in taken)
    inputs = inputs or tuple(name for name in spare if name not in taken)
    if not inputs:
        raise DataError(f"no inputs are left: the data has {', '.join(names) or 'nothing'}")
    return Roles(inputs, chosen, weight, options.split_column, options.time, options.group)
