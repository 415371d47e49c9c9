"""Keeping the user's training safe from the recorder: what fails here never reaches ``fit``."""

import sqlite3
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from accel_engine.errors import AccelError

LONGEST_REASON = 500
"""Characters of an exception's text that a run holds."""


class CanGiveUp(Protocol):
    """What has methods that may not raise."""

    def give_up(self, error: Exception) -> None:
        """End what failed, and say so."""


P = ParamSpec("P")
Guarded = TypeVar("Guarded", bound=CanGiveUp)


def guarded(method: Callable[Concatenate[Guarded, P], None]) -> Callable[Concatenate[Guarded, P], None]:
    """Let no exception out of a method; its object gives up instead.

    ``KeyboardInterrupt`` and ``SystemExit`` pass: they are the user's.
    """

    @wraps(method)
    def call(self: Guarded, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 (whatever it is, training goes on)
            with suppress(Exception):
                self.give_up(error)

    return call


def warn(message: str) -> None:
    """Warn the user; where warnings are errors, or cannot be shown, it is printed instead of raised."""
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    except Exception:  # noqa: BLE001 (the warning itself as an exception, or a fault of the user's own showwarning)
        with suppress(Exception):
            sys.stderr.write(f"warning: {message}\n")


def describe(error: BaseException) -> str:
    """An exception in words, on one line: ``ValueError: oh no``; of what has no fault of a program, only its text."""
    text = ""
    with suppress(Exception):  # a user's own exception may fail to give its text
        text = " ".join(str(error).split())[:LONGEST_REASON]
    if isinstance(error, (AccelError, OSError, sqlite3.Error)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def value_or_none(find: Callable[..., Any], *arguments: Any) -> Any:
    """What ``find`` gives, or ``None`` where it fails: a fact about a user's model that cannot be read is unknown."""
    try:
        return find(*arguments)
    except Exception:  # noqa: BLE001 (a user's own classes may raise anything)
        return None
