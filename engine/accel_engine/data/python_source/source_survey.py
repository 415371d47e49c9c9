"""Checks a user's function that returns data before TensorFlow starts; the function is not run."""

from accel_engine.data.data_options import COLUMN_OPTIONS, DataOptions
from accel_engine.data.dataset_entry import DatasetEntry
from accel_engine.errors import DataError, PlanError
from accel_engine.user_code import UserFunction
from accel_engine.user_source import check_source

ARGUMENTS = ("batch_size", "image_size", "seed", "split")
"""Names of the arguments that a function may ask for."""


def survey(entry: DatasetEntry, options: DataOptions) -> DatasetEntry:
    """Check the function by its source; nothing else is known before it runs.

    Raises:
        DataError: There is no such function, or it requires other arguments.
        PlanError: An option does not fit.
    """
    check_options(options)
    parameters = check_source(user_function(entry.function), ARGUMENTS)
    if options.image_size is not None and parameters is not None and "image_size" not in parameters:
        raise missing_image_size(entry, options)
    if options.validation_data:
        check_source(user_function(options.validation_data, "validation_data"), ARGUMENTS)
    return entry


def user_function(spec: str, field: str = "data") -> UserFunction:
    """The function of ``FILE.py:FUNCTION`` or ``PACKAGE.MODULE:FUNCTION``.

    Args:
        spec: The function.
        field: The plan's field that names it.

    Raises:
        PlanError: It has another form.
    """
    target, _, name = spec.rpartition(":")
    if not target or not name.isidentifier():
        raise PlanError(field, spec, "must be FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION, as the data is")
    return UserFunction(target, name, f"data {target.rpartition('/')[2]}:{name}", DataError)


def check_options(options: DataOptions) -> None:
    """Raise if the plan has fields that are for tables.

    Raises:
        PlanError: It has.
    """
    for name in ("kinds",) if options.window is not None else COLUMN_OPTIONS:
        if value := getattr(options, name):
            raise PlanError(name, value, "only for files: the function says what inputs and targets are")


def missing_image_size(entry: DatasetEntry, options: DataOptions) -> PlanError:
    """The error for an image size that a function does not ask for."""
    return PlanError("image_size", options.image_size, f"{entry.name} has no parameter image_size")
