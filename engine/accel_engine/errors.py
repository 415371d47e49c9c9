"""Errors with messages for the user."""

from accel_engine.text import printable


class AccelError(Exception):
    """An error that is shown to the user as a message, without a traceback.

    Attributes:
        exit_status: Exit status of a command that ends with it.
    """

    exit_status = 1

    def __str__(self) -> str:
        """The message, without control characters of quoted names, values and errors."""
        return printable(super().__str__())


class UsageError(AccelError):
    """Wrong usage: an invalid name, value or file."""

    exit_status = 2


class PlanError(UsageError):
    """An invalid plan.

    Attributes:
        field: Name of the invalid field.
        value: Its value.
        allowed: A message about the allowed values.
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"{field} = {value!r}: {allowed}")
        self.field = field
        self.value = value
        self.allowed = printable(allowed)


class ModelError(AccelError):
    """A model that cannot be built, or does not fit its data."""


class DataError(AccelError):
    """Data that cannot be read, or is invalid."""


class RunError(AccelError):
    """A run that cannot be found, read or written."""


class DatabaseError(RunError):
    """A run's database that cannot be read or written, perhaps only now: it is locked, or the disk is full."""


class EngineMissingError(AccelError):
    """TensorFlow is not installed, or not usable."""
