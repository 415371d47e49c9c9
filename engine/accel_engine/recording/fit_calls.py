"""Which call of ``fit`` a callback is in, and the exception that ends it.

Keras tells callbacks nothing of an exception, and a script may catch and forget it at once. So ``keras.Model.fit`` is
replaced by a function that calls it and looks at what it raises. Nothing else of a call is changed: neither what it is
given or returns, nor the exception or its traceback.
"""

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any

import keras

from accel_engine.events import Outcome
from accel_engine.recording.error_guard import describe


class FitCall:
    """One call of ``fit``.

    Attributes:
        running: Whether it has not ended.
        on_exception: Called with the exception that ends it, in its own thread, before that goes on to the caller.
            They may not raise.
    """

    def __init__(self) -> None:
        self.running = True
        self.on_exception: list[Callable[[BaseException], None]] = []


_CALL: ContextVar[FitCall | None] = ContextVar("fit_call", default=None)


def current() -> FitCall | None:
    """The innermost call that this thread is in; ``None`` where a class has a ``fit`` that does not use Keras'."""
    return _CALL.get()


def observe() -> None:
    """Replace ``keras.Model.fit``, once."""
    original = keras.Model.fit
    if hasattr(original, "observed_by_accel_tui"):
        return

    @wraps(original)
    def fit(*args: Any, **kwargs: Any) -> Any:
        call = FitCall()
        token = _CALL.set(call)
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            call.running = False
            with suppress(Exception):  # a user's own exception may refuse to tell its traceback
                if error.__traceback__ and error.__traceback__.tb_next:
                    # Without this function, as if it were not there. Not by assignment, which an exception may refuse.
                    BaseException.with_traceback(error, error.__traceback__.tb_next)
            for notify in call.on_exception:
                notify(error)
            raise
        finally:
            call.running = False
            _CALL.reset(token)

    fit.observed_by_accel_tui = True  # type: ignore[attr-defined]
    keras.Model.fit = fit


def outcome_of(error: BaseException | None) -> tuple[Outcome, str]:
    """How a run ends whose ``fit`` was ended by an exception, and why; ``None`` where nobody knows which it was."""
    match error:
        case None:
            return Outcome.FAILED, "an exception, or an exit of the script's own, ended fit"
        case KeyboardInterrupt():
            return Outcome.STOPPED, "interrupted at the keyboard"
        case SystemExit(code=None | 0):
            return Outcome.STOPPED, "the script exited"
        case SystemExit(code=int(status)):
            return Outcome.FAILED, f"the script exited with status {status}"
    return Outcome.FAILED, describe(error)
