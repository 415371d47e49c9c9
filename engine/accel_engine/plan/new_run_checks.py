"""What a new run needs, and a run that continues does not."""

from collections.abc import Iterator

from accel_engine.data import DatasetEntry
from accel_engine.errors import FieldValue, PlanError
from accel_engine.plan.fields import DEFAULTS, USES, PlanFields
from accel_engine.plan.tuning_checks import WEIGHT_FILES
from accel_engine.user_paths import no_file, user_path


def new_run_errors(plan: PlanFields, data: DatasetEntry) -> Iterator[PlanError]:
    """Yield an error for a file of initial weights that does not exist, and for fields without effect on the data.

    A run that was started with such fields can still continue.
    """
    weights = plan.initial_weights
    if weights.endswith(WEIGHT_FILES) and (why := no_file(user_path(weights))):
        yield PlanError("initial_weights", weights, why)
    for name in fields_of_other_data(plan, data):
        reason = f"has no effect on built-in data, such as {data.name}: leave it out, or give your own "
        yield PlanError(name, getattr(plan, name), reason, FieldValue("data"))


def fields_of_other_data(plan: PlanFields, data: DatasetEntry) -> Iterator[str]:
    """Yield the fields that have a value, but no effect on the data."""
    for name, use in USES.items():
        if use.of_own_data and not data.is_own and getattr(plan, name) != DEFAULTS[name]:
            yield name
