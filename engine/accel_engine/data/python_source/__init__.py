"""Data that a Python function of the user returns; the function is run when the data is loaded."""

from importlib import import_module
from typing import TYPE_CHECKING

from accel_engine.data.data_options import COLUMN_OPTIONS, DataOptions, Progress
from accel_engine.data.source import DatasetEntry, Source
from accel_engine.errors import DataError, PlanError
from accel_engine.user_code import UserFunction
from accel_engine.user_source import check_source

if TYPE_CHECKING:
    from accel_engine.data.dataset import Dataset

ARGUMENTS = ("batch_size", "image_size", "seed", "split")
"""Names of the arguments that a function may ask for."""


class PythonSource(Source):
    """Arrays or streams that a function returns."""

    may_be_series = takes_window = resizes_images = loads_with_tensorflow = True

    def describe(self) -> DatasetEntry:
        """Check the function by its source; nothing else is known before it runs."""
        options = self.options
        self._check_options()
        parameters = check_source(user_function(self.entry.function), ARGUMENTS)
        if options.image_size is not None and parameters is not None and "image_size" not in parameters:
            raise missing_image_size(self.entry.name, options)
        if options.validation_data:
            check_source(user_function(options.validation_data, "validation_data"), ARGUMENTS)
        return self.entry

    def load(self, progress: Progress) -> "Dataset":
        """Call the function, and make a dataset of what it returns."""
        self._check_options()
        module = import_module("accel_engine.data.python_source.returned_dataset")
        return module.load_returned(self.entry, self.options)

    def _check_options(self) -> None:
        self.refuse(COLUMN_OPTIONS, "only for files: the function says what inputs and targets are")


def user_function(spec: str, field: str = "data") -> UserFunction:
    """The function of ``FILE.py:FUNCTION`` or ``PACKAGE.MODULE:FUNCTION``.

    Args:
        spec: The function.
        field: The plan's field that names it.

    Raises:
        PlanError: The text has another form.
    """
    target, _, name = spec.rpartition(":")
    if not target or not name.isidentifier():
        raise PlanError(field, spec, "must be FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION, as the data is")
    return UserFunction(target, name, f"data {target.rpartition('/')[2]}:{name}", DataError)


def missing_image_size(name: str, options: DataOptions) -> PlanError:
    """The error for an image size that a function does not ask for."""
    return PlanError("image_size", options.image_size, f"{name} has no parameter image_size")
