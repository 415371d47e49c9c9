"""Keeps errors of the recorder out of the user's ``fit``."""

import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from accel_engine.recording import run_link


class HandlesErrors(Protocol):
    """A class with methods that must not raise."""

    def _on_error(self, error: Exception) -> None:
        """Report an error to the user, and stop if recording cannot continue."""


P = ParamSpec("P")
Result = TypeVar("Result")
Guarded = TypeVar("Guarded", bound=HandlesErrors)


def guarded(method: Callable[Concatenate[Guarded, P], Result]) -> Callable[Concatenate[Guarded, P], Result | None]:
    """Decorate a method to call ``_on_error`` and return ``None`` instead of raising.

    ``KeyboardInterrupt`` and ``SystemExit`` are raised, as they come from the user.
    """

    @wraps(method)
    def call(self: Guarded, /, *args: P.args, **kwargs: P.kwargs) -> Result | None:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 (whatever it is, training continues)
            with suppress(Exception):
                self._on_error(error)
            return None

    return call


def warn(message: str) -> None:
    """Warn the user: in the log of a run that ``accel-tui run`` has started, else by a warning.

    The warning is printed if warnings are errors or cannot be shown.
    """
    if run_link.report_to_run(message):
        return
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    except Exception:  # noqa: BLE001 (the warning raised as an error, or an error of the user's showwarning)
        with suppress(Exception):
            sys.stderr.write(f"warning: {message}\n")


def value_or_none(find: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``find``; return ``None`` if it raises, e.g. for a property of a user's model that cannot be read."""
    try:
        return find(*arguments)
    except Exception:  # noqa: BLE001 (a user's classes may raise anything)
        return None
