"""Which script trains, and whether it still does."""

import shlex
import sys
import threading
from pathlib import Path
from types import FrameType


def name() -> str:
    """What the user would call what runs here: the file's name, or ``notebook``."""
    if "ipykernel" in sys.modules:
        return "notebook"
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in ("", "-c") else "python"


def command() -> str:
    """The command line of this process."""
    return shlex.join(sys.orig_argv)


class ScriptWatch:
    """Sees when ``fit`` was left without a word, since an exception passes callbacks by.

    It is made in a callback that ``fit`` calls. It keeps frames, and so what ``fit`` was given, from being freed.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._before = [*_chain(sys.exception()), *_chain(_last_exception())]
        frame: FrameType | None = sys._getframe()  # noqa: SLF001 (there is no other way to see one's callers)
        while frame and frame.f_code.co_name != "fit":
            frame = frame.f_back
        self._fit = frame
        self._callers: set[FrameType] = set()
        while frame:
            self._callers.add(frame)
            frame = frame.f_back

    @property
    def left(self) -> bool:
        """Whether ``fit`` has ended; never where callbacks are called by another function."""
        frame, last = sys._current_frames().get(self._thread), None  # noqa: SLF001 (see above)
        while frame and frame is not self._fit:
            frame, last = frame.f_back, frame
        # A frame that is done meanwhile knows no caller any more: then nothing was seen of those of ``fit``.
        return self._fit is not None and frame is None and last in self._callers

    @property
    def exception(self) -> BaseException | None:
        """What ended it, if somebody still knows."""
        handled: object = sys._current_exceptions().get(self._thread)  # noqa: SLF001 (see above)
        if isinstance(handled, tuple):  # before Python 3.12 it came with its type and its traceback
            handled = handled[1]
        for exception in (handled, _last_exception()):
            # Who handles it may be handling another meanwhile: the oldest is the one that ended it.
            for each in reversed(_chain(exception)):
                if not any(each is before for before in self._before) and self._passed(each):
                    return each
        return None

    def forget(self) -> None:
        """Let go of all frames; it sees nothing more."""
        self._fit, self._callers, self._before = None, set(), []

    def _passed(self, exception: BaseException) -> bool:
        traceback = exception.__traceback__
        while traceback:
            if traceback.tb_frame in self._callers:
                return True
            traceback = traceback.tb_next
        return False


def _chain(exception: object) -> list[BaseException]:
    """An exception, and all that were being handled when it was raised, the newest first."""
    chain = []
    while isinstance(exception, BaseException):
        chain.append(exception)
        exception = exception.__context__
    return chain


def _last_exception() -> BaseException | None:
    """What ended the script, or the last cell of a notebook."""
    return getattr(sys, "last_value", None)
