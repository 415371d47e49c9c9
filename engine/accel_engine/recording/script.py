"""Identifies the running script, and watches whether it has left ``fit``."""

import inspect
import shlex
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType

from accel_engine.errors import format_error
from accel_engine.events import Outcome
from accel_engine.private_names.python_names import current_exception, current_frame


def program_name() -> str:
    """The script's file name, ``notebook`` or ``python``."""
    if "ipykernel" in sys.modules:
        return "notebook"
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in ("", "-c") else "python"


def command() -> str:
    """The command line of this process."""
    return shlex.join(sys.orig_argv)


def outcome_at_exit(exception_before: object) -> tuple[Outcome, str]:
    """The outcome and reason of a script that exits.

    Args:
        exception_before: :func:`last_exception` at an earlier time. In an interactive session, no exception ends it.
    """
    error = last_exception()
    if error is exception_before or _is_interactive() or not isinstance(error, BaseException):
        return Outcome.FINISHED, ""
    return outcome_of(error)


def _is_interactive() -> bool:
    """Whether a user types into this process; libraries import IPython in scripts, too."""
    with suppress(Exception):  # a part of IPython is imported, or Python exits
        if sys.modules["IPython"].get_ipython() is not None:
            return True
    return hasattr(sys, "ps1")


def outcome_of(error: BaseException | None) -> tuple[Outcome, str]:
    """The outcome and reason of a run whose ``fit`` or loop raised; ``None`` if the exception of ``fit`` is unknown."""
    match error:
        case None:
            return Outcome.FAILED, "fit was ended by an exception or an exit of the script"
        case KeyboardInterrupt():
            return Outcome.STOPPED, "interrupted from the keyboard"
        case SystemExit(code=None | 0):
            return Outcome.STOPPED, "the script exited"
        case SystemExit(code=int(status)):
            return Outcome.FAILED, f"the script exited with status {status}"
    return Outcome.FAILED, format_error(error)


def last_exception() -> object:
    """The exception that ended the script, or the last cell of a notebook; ``None`` if there is none."""
    return getattr(sys, "last_value", None)


class ScriptWatch:
    """Detects from stack frames that ``fit`` was left by an exception, which callbacks do not see.

    Create it in a callback that ``fit`` calls. Until :meth:`release`, it keeps frames, and so the arguments of
    ``fit``, alive.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._before = [*_chain(sys.exception()), *_chain(last_exception())]
        frame = inspect.currentframe()
        while frame and frame.f_code.co_name != "fit":
            frame = frame.f_back
        self._fit = frame
        self._callers: set[FrameType] = set()
        while frame:
            self._callers.add(frame)
            frame = frame.f_back

    @property
    def left(self) -> bool:
        """Whether ``fit`` was left; always false if another function calls the callbacks."""
        frame, last = current_frame(self._thread), None
        while frame and frame is not self._fit:
            frame, last = frame.f_back, frame
        # A frame that has returned in the meantime has no caller: then the callers of ``fit`` were not found.
        return self._fit is not None and frame is None and last in self._callers

    @property
    def exception(self) -> BaseException | None:
        """The exception that ended ``fit``, if it is still referenced."""
        for exception in (current_exception(self._thread), last_exception()):
            # Its handler may have raised others: the oldest one ended ``fit``.
            for each in reversed(_chain(exception)):
                if not any(each is before for before in self._before) and self._passed(each):
                    return each
        return None

    def release(self) -> None:
        """Release all frames; nothing is detected any more."""
        self._fit, self._callers, self._before = None, set(), []

    def _passed(self, exception: BaseException) -> bool:
        traceback = exception.__traceback__
        while traceback:
            if traceback.tb_frame in self._callers:
                return True
            traceback = traceback.tb_next
        return False


def _chain(exception: object) -> list[BaseException]:
    """An exception and its chain of ``__context__``, newest first."""
    chain = []
    while isinstance(exception, BaseException):
        chain.append(exception)
        exception = exception.__context__
    return chain
