"""Errors whose text is meant for the person at the terminal."""

from accel_engine.text import printable


class AccelError(Exception):
    """Something that the user can read and act upon; shown as one message, never as a traceback.

    Attributes:
        exit_status: What a command that ends with this error returns to the shell.
    """

    exit_status = 1

    def __str__(self) -> str:
        """What it says, in which names, values and other errors may be quoted, fit for the terminal."""
        return printable(super().__str__())


class UsageError(AccelError):
    """What was asked for cannot be done as asked: a wrong name, value or file."""

    exit_status = 2


class PlanError(UsageError):
    """A plan that cannot be trained, told by field, value and what would be right.

    Attributes:
        field: Name of the plan's field at fault.
        value: What it was given.
        allowed: What it may be, in words.
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"{field} = {value!r}: {allowed}")
        self.field = field
        self.value = value
        self.allowed = printable(allowed)


class ModelError(AccelError):
    """A model that could not be built, or does not fit its data."""


class DataError(AccelError):
    """Data that could not be read, or is not what it should be."""


class RunError(AccelError):
    """A run that cannot be found, read or written."""


class EngineMissingError(AccelError):
    """No usable TensorFlow is installed."""
