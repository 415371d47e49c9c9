"""Private names of CPython, by which a recorder sees that a script has left ``fit``. Without them it sees nothing."""

import sys
from types import FrameType


def current_frame(thread: int) -> FrameType | None:
    """The innermost stack frame of a thread; ``None`` if it has ended, or without ``sys._current_frames``.

    No public name gives the frames of another thread.
    """
    frames = getattr(sys, "_current_frames", dict[int, FrameType])
    return frames().get(thread)


def current_exception(thread: int) -> BaseException | None:
    """The exception that a thread is handling; ``None`` if there is none, or without ``sys._current_exceptions``.

    The public ``sys.exception`` is for the calling thread only.
    """
    exceptions = getattr(sys, "_current_exceptions", dict[int, BaseException])
    handled: object = exceptions().get(thread)
    if isinstance(handled, tuple):  # before Python 3.12: type, exception and traceback
        handled = handled[1]
    return handled if isinstance(handled, BaseException) else None
