"""Wraps ``keras.Model.fit`` to find the exception that ends a call.

Keras does not tell callbacks of exceptions, and a script may catch them. So ``keras.Model.fit`` is replaced by a
function that calls it and sees what it raises. It changes neither result, exception nor traceback; it adds a recorder
to the arguments under ``accel-tui run``.
"""

import inspect
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any

import keras

from accel_engine.recording.fit_faults import faults_of


class FitCall:
    """One call of ``fit``.

    Attributes:
        running: Whether it has not returned.
        on_exception: Called with the exception that ends it, in its own thread, before the caller gets it.
            Must not raise.
        faults: What Keras does otherwise than the call says, in words.
    """

    def __init__(self) -> None:
        self.running = True
        self.faults: tuple[str, ...] = ()
        self.on_exception: list[Callable[[BaseException], None]] = []


_CALL: ContextVar[FitCall | None] = ContextVar("fit_call", default=None)


def current() -> FitCall | None:
    """This thread's innermost call of ``fit``; ``None`` for a class whose ``fit`` does not call Keras'."""
    return _CALL.get()


Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and named arguments."""

Prepare = Callable[[inspect.Signature, Arguments], Arguments]
"""Returns the arguments for a call of ``fit``, from its signature and the user's arguments."""

_prepare: Prepare | None = None


def observe(prepare: Prepare | None = None) -> None:
    """Replace ``keras.Model.fit``, once.

    Args:
        prepare: Applied to every call from now on.
    """
    global _prepare
    _prepare = prepare or _prepare
    original = keras.Model.fit
    if hasattr(original, "observed_by_accel_tui"):
        return
    signature = inspect.signature(original)

    @wraps(original)
    def fit(*args: Any, **kwargs: Any) -> Any:
        call = FitCall()
        with suppress(Exception):  # arguments that Keras will refuse, or whatever it is
            call.faults = faults_of(signature.bind(*args, **kwargs).arguments)
        if _prepare:
            args, kwargs = _prepare(signature, (args, kwargs))
        token = _CALL.set(call)
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            call.running = False
            with suppress(Exception):  # a user's exception may override __traceback__
                if error.__traceback__ and error.__traceback__.tb_next:
                    # Hide this function. Not by assignment, which a user's exception may override, too.
                    BaseException.with_traceback(error, error.__traceback__.tb_next)
            for notify in call.on_exception:
                notify(error)
            raise
        finally:
            call.running = False
            _CALL.reset(token)

    fit.observed_by_accel_tui = True  # type: ignore[attr-defined]
    keras.Model.fit = fit
